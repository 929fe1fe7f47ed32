package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// member is one upstream with its state. It exists while it is in the set, while it has open assignments, and then
// until isGone lets it be forgotten.
type member struct {
	Upstream
	id uint64
	membership
	inReported bool // it is in Pool.reported
	drained    bool // an operator drains it

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

// membership records whether and since when an upstream is in the set.
type membership struct {
	inSet bool
	named uint64    // number of the last set that contains it
	since time.Time // when it joined or left the set
	again time.Time // when it last joined again or restarted; earlier reports are from another process
}

// probing is the state of the probes of one upstream.
type probing struct {
	failed int       // in a row
	paused time.Time // when the pause ends
}

// sent is a job that was sent to an upstream.
type sent struct {
	need
	number uint64 // number of the claim
	waiter Waiter // the job, if it can be moved; else nil
}

// unanswered holds the jobs at one upstream whose responses have not started.
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

// countBetween counts the jobs whose claim numbers are above after and at most number.
func (u *unanswered) countBetween(after, number uint64) (n int) {
	for of := range u.jobs {
		if after < of && of <= number {
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

// join resets an upstream that joined the set or restarted. The state of its breaker stays, because an upstream that
// fails can keep restarting and registering again.
//
// Jobs up to the number claims were sent before. They can be at the process before, so no report must contain them.
func (m *member) join(now time.Time, claims uint64, detector overload.Detector) {
	if !m.since.IsZero() {
		m.again = now
	}
	m.since, m.drained = now, false
	m.suspicion.Joined()
	m.breaker.ForgetReports()
	m.load.reset()
	m.load.detector, m.load.level = detector, 1
	m.probing = probing{}
	m.figures.forget(claims)
	m.cached.forget()
	m.latency, m.slowness = peakEWMA{}, slowness{}
}

// leave marks an upstream that left the set.
func (m *member) leave(now time.Time) {
	m.inSet, m.since = false, now
	m.suspicion.Left()
}

// isGone reports whether an upstream that left can be forgotten. Its last job must have ended. If its breaker has
// opened, it is kept until it has been gone for remembered and the open time has ended: it could join again and fail
// again. The open time can be longer than remembered, for example while health checks fail.
func (m *member) isGone(now time.Time, remembered time.Duration) bool {
	return !m.inSet && m.load.inFlight == 0 && (m.breaker.Trips() == 0 || now.Sub(m.since) >= remembered && m.breaker.Ready(now))
}

// During rampUp, the weight of an upstream that joined grows from leastRamp to all of its weight. So it gets its
// projects one after another, and does not fetch all their data at once.
const (
	rampUp    = 30 * time.Second
	leastRamp = 0.1
)

// ramp returns the share of its weight that the upstream has at now.
func (m *member) ramp(now time.Time) float64 {
	return min(max(leastRamp, now.Sub(m.since).Seconds()/rampUp.Seconds()), 1)
}

// leavingReason returns Stopping, Drained or Drains if the upstream takes no new jobs because it leaves, otherwise
// Eligible.
func (m *member) leavingReason(now time.Time) Reason {
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

// isHealthy reports whether the upstream is not suspect and its breaker is closed. An upstream that is not healthy can
// still be eligible, for a trial job.
func (m *member) isHealthy(now time.Time) bool {
	return m.suspicion.Why() == "" && m.breaker.Status(now).State == health.Closed
}

// isFresh reports whether the load in the last report is recent and credible. If not, the load is estimated from this
// sidecar's own jobs.
func (m *member) isFresh(now time.Time, interval time.Duration) bool {
	return !m.figures.doubts.doubted && now.Sub(m.load.at) <= loadIntervals*interval
}

// updateDoubts records a report, to decide whether the upstream's load is credible. claims is the number of the last
// claim. A report soon after the previous one is ignored, because jobs can still be in transit.
func (m *member) updateDoubts(at time.Time, jobs float64, claims uint64, interval time.Duration) {
	if d := &m.figures.doubts; at.Sub(d.at) >= interval/2 {
		d.observe(at, jobs, m.unanswered.countBetween(d.joined, d.number))
		d.number = claims
	}
}

// cores returns the number of joblets that can run at once: as reported or discovered, else inferred, else assumed.
func (m *member) cores(n *norms) float64 {
	return cmp.Or(float64(m.figures.plausibleCores(m.Cores, n)), m.load.cores(), defaultCores)
}

// reason returns why the upstream's health or load speaks against a job, or with a nil job, against any job. count says
// which rules apply.
func (m *member) reason(now time.Time, job *selection.Job, count rules, interval time.Duration) Reason {
	switch {
	case count.breakers && !m.breaker.Ready(now) && !(count.early && m.breaker.ReadyEarly(now)):
		return Shut
	case count.suspicion && m.suspicion.Excludes(now, m.load.inFlight):
		return Suspect
	}
	return m.load.reason(now, job, m.load.level < 1 && m.isFresh(now, interval))
}
