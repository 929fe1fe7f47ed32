package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// loadIntervals is how long a report of load counts, in intervals between two reports: it outlives two polls in a row that
// fail.
const loadIntervals = 3

// load is how loaded one upstream is, and which jobs it may take therefore.
type load struct {
	estimate
	detector overload.Detector
	level    overload.Level
	shed     time.Time // until then it gets no job if another upstream may, because it refused one for load
}

// reason is what the load says against giving the upstream a job; nil is any job. fresh says that the last report counts.
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

// estimate is how many jobs are at one upstream: those that its last report
// tells of, plus this sidecar's claims since then, less the ends of this
// sidecar's jobs since then. A report arrives later than the instant that it
// tells of, so the latest claims and ends are remembered and counted anew.
//
// Jobs that wait for what another job computes, such as a fetch, run without a core. They are as many as run beyond the
// busy cores, where an upstream tells these. It must have told of stalled joblets, too: where nothing is ever stalled,
// jobs share the cores.
type estimate struct {
	at               time.Time // the instant that the report tells of; zero is none
	running, stalled float64   // its counts
	stalledHigh      float64   // of stalled, those with high priority; negative is unknown
	beyond           float64   // jobs that ran beyond the busy cores, by the last report that told
	queues           bool      // joblets were stalled there

	ran  float64 // jobs: as many as were seen to run at once
	full bool    // others were stalled then: there are no more cores

	inFlight           int     // this sidecar's jobs there
	claims, high, ends history // since at; high are the claims with high priority
}

// claim counts a job that goes there.
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

// adopt replaces the report. stalledHigh is the part of stalled with high priority, and busy the cores that run a joblet;
// negative is unknown.
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
	// unheardCores is how many cores an upstream counts as having before it has told anything.
	unheardCores = 16
	// beyondSeen is how many times the cores that were seen to work an upstream may have,
	// while no job had to wait there.
	beyondSeen = 4
	// mostSeen bounds what is learned so: more must be told.
	mostSeen = 256
)

// cores is how many cores there seem to be, where the upstream does not tell; 0 is not known.
func (e *estimate) cores() float64 {
	switch {
	case e.ran == 0:
		return 0
	case e.full:
		return min(max(e.ran, 1), mostSeen)
	}
	return min(max(beyondSeen*e.ran, 1), mostSeen)
}

// present is how many jobs are there, never less than this sidecar's own. A
// report that is not fresh does not count.
func (e *estimate) present(fresh bool) float64 {
	own := float64(e.inFlight)
	if !fresh {
		return own
	}
	return max(own, e.running+e.stalled+float64(e.claims.n-e.ends.n))
}

// coreless is how many of them hold no core, and need none yet.
func (e *estimate) coreless(fresh bool) float64 {
	if !fresh || !e.queues {
		return 0
	}
	return min(e.beyond, e.running, e.present(fresh))
}

// overtaken is how many of the jobs that wait for one of that many cores a high job would overtake: those with low
// priority. Each end of a job has let one that waits start, high before low. Where the upstream does not report
// priorities, a high job overtakes nobody.
func (e *estimate) overtaken(fresh bool, cores float64) float64 {
	if !fresh || e.stalledHigh < 0 {
		return 0
	}
	waiting := max(0, e.present(fresh)-e.coreless(fresh)-cores)
	return waiting - min(max(0, e.stalledHigh+float64(e.high.n-e.ends.n)), waiting)
}

// assigned is how many jobs were sent there by the report and by this sidecar
// since, whether they have ended or not.
func (e *estimate) assigned(fresh bool) float64 {
	if !fresh {
		return float64(e.inFlight)
	}
	return e.running + e.stalled + float64(e.claims.n)
}

// history counts what happened since an instant.
type history struct {
	n      int
	latest []time.Time // the latest of the n, earliest first
}

// maxHistory bounds the instants that are remembered; a report forgets most of
// them every few seconds.
const maxHistory = 4096

func (h *history) add(now time.Time) {
	if len(h.latest) >= maxHistory {
		h.latest = slices.Delete(h.latest, 0, maxHistory/2)
	}
	h.latest = append(h.latest, now)
	h.n++
}

// forget drops what happened up to an instant.
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

// counts are the counts of a hint. Where it does not tell both, they follow from the
// utilization, or else the other stays as the last report has it.
func (h *Hint) counts(last *estimate, cores float64) (running, stalled float64, ok bool) {
	running, stalled = sum(h.Running), sum(h.Stalled)
	all := h.Utilization * cores
	switch {
	case !(running < 0) && !(stalled < 0): // NaN is told, and not sane
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
