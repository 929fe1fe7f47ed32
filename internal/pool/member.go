package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// member is one upstream and all that is known of it. It lives while it is in
// the set or has open assignments, and for as long after that as its breaker is remembered.
type member struct {
	Upstream
	id uint64
	membership
	drained bool // by hand

	breaker    health.Breaker // is it alive?
	suspicion  health.Suspicion
	figures    figures // is what it reports credible?
	load       load    // how loaded is it?
	probing    probing
	cached     cached // what data is there?
	unanswered unanswered

	latency  peakEWMA
	slowness slowness
}

// membership is whether an upstream is in the set.
type membership struct {
	inSet bool
	named uint64    // the number of the last set that named it
	since time.Time // when it came into the set, or left it
}

// sent is a job that was sent to an upstream.
type sent struct {
	need
	number uint64 // of the claim
	waiter Waiter // the job, if it can be moved; else nil
}

// unanswered is the jobs at one upstream whose responses have not started.
type unanswered struct {
	jobs      map[uint64]*sent // by number
	ofProject map[uint64]int   // how many of them each project has
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

// joins drops what an upstream no longer is that joined the set or restarted: its report, cache and pace. Its
// breaker stays: an upstream that keeps failing is not forgiven for registering again.
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

// leaves takes that the upstream has left the set.
func (m *member) leaves(now time.Time) {
	m.inSet, m.since = false, now
	m.suspicion.Left()
}

// gone reports whether nothing is worth remembering of an upstream that left: its last job has ended, and its breaker has
// not opened for that long. An upstream whose breaker opened may come back to fail again.
func (m *member) gone(now time.Time, remembered time.Duration) bool {
	return !m.inSet && m.load.inFlight == 0 && (m.breaker.Trips() == 0 || now.Sub(m.since) >= remembered)
}

// rampUp is how long after an upstream has joined its weight grows, from leastRamp of it to all. So its projects come back
// one after another, and it does not fetch the data of all of them at once.
const (
	rampUp    = 30 * time.Second
	leastRamp = 0.1
)

// ramp is the share of its weight that an upstream has at now. Where all have joined together, all have the same.
func (m *member) ramp(now time.Time) float64 {
	return min(max(leastRamp, now.Sub(m.since).Seconds()/rampUp.Seconds()), 1)
}

// leaving is why an upstream takes no new jobs whatever its health, unless all leave; Eligible if it does.
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

// fresh reports whether the last report is recent enough to choose by. Without
// it, own counts serve.
func (m *member) fresh(now time.Time, interval time.Duration) bool {
	return !m.figures.doubts.doubted && now.Sub(m.load.at) <= loadIntervals*interval
}

// doubt takes in a report of so many jobs. claims is how many there were so far. A report that follows another at once
// proves nothing: the jobs may be on their way.
func (m *member) doubt(at time.Time, jobs float64, claims uint64, interval time.Duration) {
	if d := &m.figures.doubts; at.Sub(d.at) >= interval/2 {
		d.observe(at, jobs, m.unanswered.upTo(d.number))
		d.number = claims
	}
}

// cores is how many joblets run here at once.
func (m *member) cores(n *norms) float64 {
	return cmp.Or(float64(m.figures.plausibleCores(m.Cores, n)), m.load.cores(), unheardCores)
}

// reason is what health and load say against giving the upstream a job; nil is any job.
func (m *member) reason(now time.Time, job *selection.Job, count rules, interval time.Duration) Reason {
	switch {
	case count.breakers && !m.breaker.Ready(now) && !(count.early && m.breaker.ReadyEarly(now)):
		return Shut
	case count.suspicion && m.suspicion.Shuns(now, m.load.inFlight):
		return Suspect
	}
	return m.load.reason(now, job, m.load.level < 1 && m.fresh(now, interval))
}

// rules says which rules count. What falls on too many upstreams is more likely our fault, or the network's.
type rules struct {
	suspicion bool // not where more than half are suspect
	breakers  bool // not where all are shut: that is panic mode
	early     bool // a breaker is half open after its first open time, whatever that has grown to
}
