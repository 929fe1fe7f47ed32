package pool

import (
	"slices"
	"time"
)

// estimate is how many jobs are at one upstream: those that its last report
// tells of, plus this sidecar's claims since then, less the ends of this
// sidecar's jobs since then. A report arrives later than the instant that it
// tells of, so the latest claims and ends are remembered and counted anew.
type estimate struct {
	reported         bool
	at               time.Time // the instant that the report tells of
	running, stalled float64   // its counts

	ran  float64 // jobs: as many as were seen to run at once
	full bool    // others were stalled then: there are no more cores

	inFlight     int     // this sidecar's jobs there
	claims, ends history // since at
}

// claim counts a job that goes there.
func (e *estimate) claim(now time.Time) {
	e.inFlight++
	e.claims.add(now)
}

// done counts a job that ended there.
func (e *estimate) done(now time.Time) {
	e.inFlight--
	e.ends.add(now)
}

// adopt puts a report in the place of the one before.
func (e *estimate) adopt(at time.Time, running, stalled float64) {
	e.reported, e.at, e.running, e.stalled = true, at, running, stalled
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
	e.ends.forget(at)
}

// reset drops the report. This sidecar's own jobs stay.
func (e *estimate) reset() {
	e.reported, e.at, e.running, e.stalled = false, time.Time{}, 0, 0
	e.ran, e.full = 0, false
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

// fresh reports whether the report is no older than limit.
func (e *estimate) fresh(now time.Time, limit time.Duration) bool {
	return e.reported && now.Sub(e.at) <= limit
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
	i := slices.IndexFunc(h.latest, func(t time.Time) bool { return t.After(at) })
	if i < 0 {
		i = len(h.latest)
	}
	h.latest = slices.Delete(h.latest, 0, i)
	h.n = len(h.latest)
}

// unanswered counts this sidecar's jobs at an upstream whose answers have not begun. A report
// that tells of fewer than half of the jobs that were there all the time since the last one
// is not believed: an upstream that always looks idle would draw the jobs of all sidecars.
// Some may honestly be missing, such as those whose answers are under way.
type unanswered struct {
	open    int       // jobs without an answer
	older   int       // those of them that were claimed before the last comparison
	number  uint64    // of the next comparison
	at      time.Time // the instant that the last compared report tells of
	short   int       // reports in a row that told of too few
	enough  int       // reports in a row that told of enough
	doubted bool      // the load that it tells is not believed
}

// doubtedAfter is how many reports in a row change what is believed.
const doubtedAfter = 2

// claim counts a job, and returns the number to end it with.
func (u *unanswered) claim() uint64 {
	u.open++
	return u.number
}

// end counts a job's answer, or its end without one.
func (u *unanswered) end(number uint64) {
	u.open--
	if number < u.number {
		u.older--
	}
}

// compare takes in a report of so many jobs. One that follows another at once proves
// nothing: the jobs may be on their way.
func (u *unanswered) compare(at time.Time, jobs float64, apart time.Duration) {
	if at.Sub(u.at) < apart {
		return
	}
	switch {
	case 2*jobs < float64(u.older):
		u.short, u.enough = u.short+1, 0
	case u.older > 0:
		u.short, u.enough = 0, u.enough+1
	}
	if u.short >= doubtedAfter {
		u.doubted = true
	}
	if u.enough >= doubtedAfter {
		u.doubted = false
	}
	u.at, u.older = at, u.open
	u.number++
}

// forget drops the evidence, not the jobs.
func (u *unanswered) forget() { u.short, u.enough, u.doubted = 0, 0, false }
