package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// loadIntervals is how long the load in a report is used, in report intervals: three, so that two polls in a row can
// fail.
const loadIntervals = 3

// load estimates how loaded one upstream is, and decides which jobs it therefore admits.
type load struct {
	estimate
	detector overload.Detector
	level    overload.Level
	shed     time.Time // until then it gets no jobs if another upstream is eligible, because it refused a job for load
}

// reason returns why the upstream's load speaks against a job, or with a nil job, against any job. fresh is set if the
// last report is fresh.
func (l *load) reason(now time.Time, job *selection.Job, fresh bool) Reason {
	switch {
	case fresh && l.level <= 0:
		return Overloaded
	case fresh && job != nil && !l.level.Admits(*job):
		return NotAdmitted
	case now.Before(l.shed):
		return Shedding
	}
	return Eligible
}

// estimate estimates the number of jobs at one upstream: those in its last report, plus this sidecar's claims since
// then, minus the ends of this sidecar's jobs since then. A report arrives later than the instant that it describes, so
// the times of claims and ends are kept to count those after that instant.
//
// Jobs that wait for the result of another job, such as a fetch, run without holding a core. Their number is that of
// the running jobs minus that of the busy cores, if the upstream reports both. This is valid only if joblets have ever
// been stalled there: an upstream that never queues lets all running jobs share the cores.
type estimate struct {
	at               time.Time // the instant that the report describes; zero means no report
	running, stalled float64   // as reported
	stalledHigh      float64   // the stalled joblets with high priority; negative is unknown
	excess           float64   // running jobs minus busy cores, in the last report that had both
	queues           bool      // a report had stalled joblets

	seenHolding float64 // largest number of jobs seen holding cores at the same time
	seenStalled bool    // joblets were stalled at that time, so all cores were in use

	inFlight           int     // this sidecar's jobs there
	claims, high, ends history // events after at; high holds the claims with high priority
}

// claim counts a job that is sent there.
func (e *estimate) claim(now time.Time, priority selection.Priority) {
	e.inFlight++
	e.claims.add(now)
	if priority == selection.High {
		e.high.add(now)
	}
}

// done counts a job that ended there.
func (e *estimate) done(now time.Time) {
	e.inFlight--
	e.ends.add(now)
}

// adopt stores a new report. stalledHigh is the number of stalled joblets with high priority, busy that of busy cores;
// both are negative if unknown.
func (e *estimate) adopt(at time.Time, running, stalled, stalledHigh, busy float64) {
	e.at, e.running, e.stalled, e.stalledHigh = at, running, stalled, stalledHigh
	e.queues = e.queues || stalled > 0
	if busy >= 0 {
		e.excess = max(0, running-busy)
	}
	holding := running
	if e.queues {
		holding -= min(e.excess, running)
	}
	switch {
	case stalled > 0 && holding > 0:
		if !e.seenStalled {
			e.seenHolding = holding
		}
		e.seenHolding, e.seenStalled = (e.seenHolding+holding)/2, true
	case holding > e.seenHolding:
		e.seenHolding, e.seenStalled = holding, false
	}
	e.claims.forget(at)
	e.high.forget(at)
	e.ends.forget(at)
}

// reset drops the report and what was inferred from reports. The counts of this sidecar's own jobs stay.
func (e *estimate) reset() {
	*e = estimate{inFlight: e.inFlight, claims: e.claims, high: e.high, ends: e.ends}
}

const (
	// defaultCores is the assumed number of cores of an upstream if neither reports nor discovery give it.
	defaultCores = 16
	// spareCores is the assumed number of cores per job that held one, at the time when most jobs did. It applies if no
	// joblet was stalled then: some cores were probably free.
	spareCores = 4
	// maxSeenCores bounds the number of cores that is inferred. An upstream with more must report it.
	maxSeenCores = 256
)

// cores infers the number of cores of an upstream that does not report it from the number of jobs that held a core; 0
// is unknown.
func (e *estimate) cores() float64 {
	switch {
	case e.seenHolding == 0:
		return 0
	case e.seenStalled:
		return min(max(e.seenHolding, 1), maxSeenCores)
	}
	return min(max(spareCores*e.seenHolding, 1), maxSeenCores)
}

// present estimates the number of jobs there. It is at least the number of this sidecar's own jobs, and equal to it
// without a fresh report.
func (e *estimate) present(fresh bool) float64 {
	own := float64(e.inFlight)
	if !fresh {
		return own
	}
	return max(own, e.running+e.stalled+float64(e.claims.n-e.ends.n))
}

// blocked estimates the number of running jobs that hold no core because they wait for another job's result, such as a
// fetch.
func (e *estimate) blocked(fresh bool) float64 {
	if !fresh || !e.queues {
		return 0
	}
	return min(e.excess, e.running, e.present(fresh))
}

// overtaken estimates the number of jobs that a high job would overtake: low jobs that wait for a core. It assumes that
// each job that ended since the report let a waiting one start, high before low. It is 0 if the upstream does not
// report priorities.
func (e *estimate) overtaken(fresh bool, cores float64) float64 {
	if !fresh || e.stalledHigh < 0 {
		return 0
	}
	waiting := max(0, e.present(fresh)-e.blocked(fresh)-cores)
	return waiting - min(max(0, e.stalledHigh+float64(e.high.n-e.ends.n)), waiting)
}

// assigned returns the reported number of jobs plus all of this sidecar's claims since, ended or not.
func (e *estimate) assigned(fresh bool) float64 {
	if !fresh {
		return float64(e.inFlight)
	}
	return e.running + e.stalled + float64(e.claims.n)
}

// history counts the events after an instant.
type history struct {
	n      int
	latest []time.Time // times of the latest events, earliest first
}

// maxHistory is the maximum number of times that are kept. Each report drops those before it.
const maxHistory = 4096

func (h *history) add(now time.Time) {
	if len(h.latest) >= maxHistory {
		h.latest = slices.Delete(h.latest, 0, maxHistory/2)
	}
	h.latest = append(h.latest, now)
	h.n++
}

// forget drops the events up to an instant.
func (h *history) forget(at time.Time) {
	h.latest = slices.DeleteFunc(h.latest, func(t time.Time) bool { return !t.After(at) })
	h.n = len(h.latest)
}

// stalledHigh returns the number of stalled joblets with high priority; negative is unknown.
func stalledHigh(stalled [selection.Priorities]float64, byPriority bool) float64 {
	if !byPriority {
		return -1
	}
	return stalled[selection.High]
}

// counts returns the counts of a hint. A count that the hint lacks is computed from the utilization, or else taken from
// the last report.
func (h *Hint) counts(last *estimate, cores float64) (running, stalled float64, ok bool) {
	running, stalled = sum(h.Running), sum(h.Stalled)
	all := h.Utilization * cores
	switch {
	case !(running < 0) && !(stalled < 0): // in this form also NaN, which plausibleLoad then rejects
	case all >= 0:
		running, stalled = min(all, cores), max(all-cores, 0)
	case running < 0 && stalled < 0:
		return 0, 0, false
	case running < 0:
		running = last.running
	default:
		stalled = last.stalled
	}
	return running, stalled, plausibleLoad([selection.Priorities]float64{running, stalled})
}
