package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// loadIntervals is how long the load in a report counts, in report intervals: two polls can fail.
const loadIntervals = 3

// load answers the question how loaded one upstream is, and which jobs it therefore admits.
type load struct {
	estimate
	detector overload.Detector
	level    overload.Level
	shed     time.Time // until then other upstreams are preferred, because it refused a job for load
}

// reason is why the upstream's load speaks against a job; nil is any job. fresh says that the last report counts.
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

// estimate estimates the number of jobs at one upstream: those in its last report, plus this sidecar's claims since then,
// minus the ends of this sidecar's jobs since then. A report arrives later than the instant that it describes, so the times
// of claims and ends are kept.
//
// Jobs that wait for the result of another job, such as a fetch, run without a core: these are the running jobs that exceed
// the busy cores, if the upstream reports these. This is so only if joblets were ever stalled there: an upstream that never
// queues lets all running jobs share the cores.
type estimate struct {
	at               time.Time // instant of the report; zero is none
	running, stalled float64   // counts in the report
	stalledHigh      float64   // those of stalled with high priority; negative is unknown
	beyond           float64   // running jobs minus busy cores, in the last report that had both
	queues           bool      // joblets were stalled once

	ran  float64 // running jobs seen at once
	full bool    // joblets were stalled then: there are no more cores

	inFlight           int     // this sidecar's jobs there
	claims, high, ends history // since at; high are the claims with high priority
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

// adopt replaces the report. stalledHigh is the part of stalled with high priority; busy is the number of busy cores. Both
// are negative if unknown.
func (e *estimate) adopt(at time.Time, running, stalled, stalledHigh, busy float64) {
	e.at, e.running, e.stalled, e.stalledHigh = at, running, stalled, stalledHigh
	e.queues = e.queues || stalled > 0
	if busy >= 0 {
		e.beyond = max(0, running-busy)
	}
	switch {
	case stalled > 0 && running > 0:
		if !e.full {
			e.ran = running
		}
		e.ran, e.full = (e.ran+running)/2, true
	case running > e.ran:
		e.ran, e.full = running, false
	}
	e.claims.forget(at)
	e.high.forget(at)
	e.ends.forget(at)
}

// reset drops the report. This sidecar's own jobs stay.
func (e *estimate) reset() {
	*e = estimate{inFlight: e.inFlight, claims: e.claims, high: e.high, ends: e.ends}
}

const (
	// defaultCores is the assumed number of cores of an upstream without a report or a setting.
	defaultCores = 16
	// spareCores times the largest number of running jobs seen is the assumed number of cores, if no joblet was stalled then:
	// some cores were probably free.
	spareCores = 4
	// maxSeenCores bounds the number of cores that is inferred. An upstream with more must report it.
	maxSeenCores = 256
)

// cores infers the number of cores from the running jobs, for an upstream that does not report it; 0 is unknown.
func (e *estimate) cores() float64 {
	switch {
	case e.ran == 0:
		return 0
	case e.full:
		return min(max(e.ran, 1), maxSeenCores)
	}
	return min(max(spareCores*e.ran, 1), maxSeenCores)
}

// present is the number of jobs there, at least this sidecar's own. A report that is not fresh does not count.
func (e *estimate) present(fresh bool) float64 {
	own := float64(e.inFlight)
	if !fresh {
		return own
	}
	return max(own, e.running+e.stalled+float64(e.claims.n-e.ends.n))
}

// blocked is the number of running jobs that hold no core because they wait for another job's result, such as a fetch.
func (e *estimate) blocked(fresh bool) float64 {
	if !fresh || !e.queues {
		return 0
	}
	return min(e.beyond, e.running, e.present(fresh))
}

// overtaken is the number of jobs that a high job would overtake: those of low priority that wait for a core. Each end of a
// job has let a waiting one start, high before low. It is 0 if the upstream does not report priorities.
func (e *estimate) overtaken(fresh bool, cores float64) float64 {
	if !fresh || e.stalledHigh < 0 {
		return 0
	}
	waiting := max(0, e.present(fresh)-e.blocked(fresh)-cores)
	return waiting - min(max(0, e.stalledHigh+float64(e.high.n-e.ends.n)), waiting)
}

// assigned is the number of jobs in the report plus this sidecar's claims since, including those that have ended.
func (e *estimate) assigned(fresh bool) float64 {
	if !fresh {
		return float64(e.inFlight)
	}
	return e.running + e.stalled + float64(e.claims.n)
}

// history counts events since an instant.
type history struct {
	n      int
	latest []time.Time // the latest of the n, earliest first
}

// maxHistory is the maximum number of instants. A report forgets most of them every few seconds.
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

// stalledHigh is the number of stalled joblets with high priority; negative is unknown.
func stalledHigh(stalled [selection.Priorities]float64, byPriority bool) float64 {
	if !byPriority {
		return -1
	}
	return stalled[selection.High]
}

// counts returns the counts of a hint. A missing count is computed from the utilization, or else taken from the last report.
func (h *Hint) counts(last *estimate, cores float64) (running, stalled float64, ok bool) {
	running, stalled = sum(h.Running), sum(h.Stalled)
	all := h.Utilization * cores
	switch {
	case !(running < 0) && !(stalled < 0): // also NaN, which is not sane
	case all >= 0:
		running, stalled = min(all, cores), max(all-cores, 0)
	case running < 0 && stalled < 0:
		return 0, 0, false
	case running < 0:
		running = last.running
	default:
		stalled = last.stalled
	}
	return running, stalled, saneLoad([selection.Priorities]float64{running, stalled})
}
