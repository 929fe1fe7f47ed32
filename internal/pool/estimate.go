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
	e.claims.forget(at)
	e.ends.forget(at)
}

// reset drops the report. This sidecar's own jobs stay.
func (e *estimate) reset() {
	e.reported, e.at, e.running, e.stalled = false, time.Time{}, 0, 0
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
