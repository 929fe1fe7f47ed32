package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// member is one upstream with all that is known of it. It exists while it is in the set or has open assignments, and after
// that while its breaker is remembered.
type member struct {
	Upstream
	id uint64
	membership
	noted   bool // in Pool.reported
	drained bool // by an operator

	breaker    health.Breaker // is it alive?
	suspicion  health.Suspicion
	figures    figures // is what it reports credible?
	load       load    // how loaded is it?
	probing    probing
	cached     cached
	unanswered unanswered

	latency  peakEWMA
	slowness slowness
}

// membership is whether an upstream is in the set.
type membership struct {
	inSet bool
	named uint64    // number of the last set with it
	since time.Time // when it joined or left the set
}

// probing is what is known of the probes of one upstream.
type probing struct {
	failed int       // in a row
	paused time.Time // when the pause ends
}

// sent is a job that was sent to an upstream.
type sent struct {
	need
	number uint64 // of the claim
	waiter Waiter // the job, if it can be moved; else nil
	asked  bool   // the upstream was asked to withdraw the job (Pool.Withdrawals)
}

// unanswered is the jobs at one upstream whose responses have not started.
type unanswered struct {
	jobs      map[uint64]*sent // by claim number
	ofProject map[uint64]int   // number of jobs by project
}

func (u *unanswered) add(s *sent) {
	u.jobs[s.number] = s
	u.ofProject[s.project.id]++
}

func (u *unanswered) remove(s *sent) {
	delete(u.jobs, s.number)
	if u.ofProject[s.project.id]--; u.ofProject[s.project.id] == 0 {
		delete(u.ofProject, s.project.id)
	}
}

// upTo counts the jobs up to a claim's number.
func (u *unanswered) upTo(number uint64) (n int) {
	for of := range u.jobs {
		if of <= number {
			n++
		}
	}
	return n
}

func newMember(u Upstream, breakers *health.Config) *member {
	m := &member{
		Upstream: u, id: selection.UpstreamID(u.Address),
		suspicion:  health.Suspicion{Address: u.Address},
		unanswered: unanswered{jobs: map[uint64]*sent{}, ofProject: map[uint64]int{}},
	}
	m.breaker.Init(breakers)
	return m
}

// joins resets an upstream that joined the set or restarted. Its breaker stays as it is: an upstream that keeps failing can
// register again and again.
func (m *member) joins(now time.Time, detector overload.Detector) {
	m.since, m.drained = now, false
	m.suspicion.Joined()
	m.breaker.ForgetReports()
	m.load.reset()
	m.load.detector, m.load.level = detector, 1
	m.probing = probing{}
	m.figures.forget()
	m.cached.forget()
	m.latency, m.slowness = peakEWMA{}, slowness{}
}

// leaves marks an upstream that left the set.
func (m *member) leaves(now time.Time) {
	m.inSet, m.since = false, now
	m.suspicion.Left()
}

// gone reports whether an upstream that left can be forgotten: its last job has ended, and its breaker never opened or it
// left long enough ago. An upstream whose breaker opened can join again and fail again.
func (m *member) gone(now time.Time, remembered time.Duration) bool {
	return !m.inSet && m.load.inFlight == 0 && (m.breaker.Trips() == 0 || now.Sub(m.since) >= remembered)
}

// rampUp is how long the weight of an upstream that joined grows, from leastRamp of it. So it gets its projects one after
// another, and does not fetch all their data at once.
const (
	rampUp    = 30 * time.Second
	leastRamp = 0.1
)

// ramp is the share of its weight that the upstream has at now.
func (m *member) ramp(now time.Time) float64 {
	return min(max(leastRamp, now.Sub(m.since).Seconds()/rampUp.Seconds()), 1)
}

// leaving is why the upstream takes no new jobs: it stops or drains. Otherwise it is Eligible.
func (m *member) leaving(now time.Time) Reason {
	switch {
	case !m.StopsAt.IsZero() && m.StopsAt.Sub(now) <= StopNotice:
		return Stopping
	case m.drained:
		return Drained
	case m.Draining:
		return Drains
	}
	return Eligible
}

// fresh reports whether the last report is recent and believed. If not, this sidecar's own counts are used.
func (m *member) fresh(now time.Time, interval time.Duration) bool {
	return !m.figures.doubts.doubted && now.Sub(m.load.at) <= loadIntervals*interval
}

// doubt decides whether the load in a report is believed. claims is the number of the last claim. A report soon after
// another one proves nothing: the jobs can be in transit.
func (m *member) doubt(at time.Time, jobs float64, claims uint64, interval time.Duration) {
	if d := &m.figures.doubts; at.Sub(d.at) >= interval/2 {
		d.observe(at, jobs, m.unanswered.upTo(d.number))
		d.number = claims
	}
}

// cores is the number of joblets that run at once.
func (m *member) cores(n *norms) float64 {
	return cmp.Or(float64(m.figures.plausibleCores(m.Cores, n)), m.load.cores(), defaultCores)
}

// reason is why the upstream's health or load speaks against a job; nil is any job.
func (m *member) reason(now time.Time, job *selection.Job, count rules, interval time.Duration) Reason {
	switch {
	case count.breakers && !m.breaker.Ready(now) && !(count.early && m.breaker.ReadyEarly(now)):
		return Shut
	case count.suspicion && m.suspicion.Shuns(now, m.load.inFlight):
		return Suspect
	}
	return m.load.reason(now, job, m.load.level < 1 && m.fresh(now, interval))
}

// rules says which rules apply. A fault that seems to affect too many upstreams is more likely this sidecar's or the
// network's.
type rules struct {
	suspicion bool // unless more than half of the upstreams are suspect
	breakers  bool // unless all breakers are open: that is panic mode
	early     bool // breakers are half open after their first open time, whatever it has grown to
}
