package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Watch compares the responses that upstreams owe, and lists the upstreams that are suspect or hang. In its methods,
// interval is the mean time between two reports of one upstream. The zero value is ready to use.
type Watch struct {
	claims   uint64          // so far
	owing    []*Suspicion    // upstreams that owe responses, and some that no longer do
	suspects map[string]bool // upstreams that are suspect or hang, and some that no longer are
	poll     []string        // addresses of upstreams that should report at once
	changed  bool            // a suspect was found, or a report or health check arrived or failed, or Changed was called, since TakeSuspects was last called
}

// Claims returns the number of claims so far, which is also the number of the last claim.
func (w *Watch) Claims() uint64 { return w.claims }

// TakePolls returns the addresses of the upstreams that should report at once, each once: they owe more responses than
// usual.
func (w *Watch) TakePolls() (addresses []string) {
	addresses, w.poll = w.poll, nil
	return addresses
}

// TakeSuspects returns the suspects and the upstreams that hang by address, if something changed since the last call. It
// forgets those for which keep is false until they get a job.
func (w *Watch) TakeSuspects(keep func(address string) bool) []string {
	if !w.changed {
		return nil
	}
	w.changed = false
	maps.DeleteFunc(w.suspects, func(address string, _ bool) bool { return !keep(address) })
	if len(w.suspects) == 0 { // the usual case: it must not allocate, because this runs at the end of each job
		return nil
	}
	return slices.Sorted(maps.Keys(w.suspects))
}

// Changed makes the next TakeSuspects return the suspects. It is called when a response contained a report, or when
// jobs remain to be moved.
func (w *Watch) Changed() { w.changed = true }

// Claimed records a claim at an upstream, and returns its number.
func (w *Watch) Claimed(now time.Time, s *Suspicion, interval time.Duration) (number uint64) {
	w.claims++
	if s.debt.owed == 0 {
		s.debt = debt{from: w.claims}
	}
	s.debt.own++
	s.debt.owed++
	if !s.listed {
		s.listed, w.owing = true, append(w.owing, s)
	}
	if s.last = now; s.why != "" {
		w.add(s)
	}
	w.compare(now, s, interval)
	return w.claims
}

// Responded records the start of a response to the claim of that number. The upstream is trusted from now on, and the
// response is evidence against upstreams that owe theirs.
func (w *Watch) Responded(now time.Time, s *Suspicion, number uint64, interval time.Duration) {
	s.why, s.responded, s.debt.owed = "", now, 0
	w.owing = slices.DeleteFunc(w.owing, func(other *Suspicion) bool {
		other.listed = other.debt.owed > 0
		return !other.listed
	})
	for _, other := range w.owing {
		if !other.left && number >= other.debt.from {
			other.debt.begun++
			if other.doesNotReport(now, interval) { // judge it here, because it may get no job at which it would be judged
				w.compare(now, other, interval)
			}
		}
	}
}

// Reported records a report that describes the upstream at an instant. The upstream is trusted from now on, unless the report
// is older than the evidence against it.
func (w *Watch) Reported(at time.Time, s *Suspicion) {
	s.reported, w.changed = at, true
	if !at.Before(s.evidence) {
		s.why, s.failed, s.dead = "", 0, false
	}
}

// ReportFailed records that a report could not be fetched or read. After two in a row the upstream is suspect, unless a
// response has begun in between. An upstream that has never reported is judged by its responses alone.
func (w *Watch) ReportFailed(now time.Time, s *Suspicion, why error, interval time.Duration) {
	if s.reported.IsZero() {
		return
	}
	w.changed = true
	s.dead = errors.Is(why, ErrNoResponse)
	s.fails(now)
	if s.Hangs() {
		w.suspect(now, s, fmt.Sprintf("%d polls in a row failed, and no response began since: %v", s.failed, RootCause(why)))
		return
	}
	w.compare(now, s, interval)
}

// Checked records a health check of an upstream that does not report. After two in a row without a response the
// upstream hangs, unless a response to a job has begun in between. Other failures say nothing about the jobs that are
// there: a server that shuts down refuses connections or responds with 500 or more, but still finishes its jobs.
func (w *Watch) Checked(now time.Time, s *Suspicion, why error) {
	switch {
	case !s.reported.IsZero() || errors.Is(why, ErrRefused):
	case !errors.Is(why, ErrNoResponse):
		s.failed = 0
	default:
		s.fails(now)
		w.add(s)
		w.changed = true
	}
}

// compare judges an upstream by the responses that it owes: it becomes suspect, or is polled early, if other upstreams
// responded to far more of their jobs.
func (w *Watch) compare(now time.Time, s *Suspicion, interval time.Duration) {
	d := &s.debt
	elsewhere := int(w.claims-d.from) + 1 - d.own
	chance := d.chance(elsewhere)
	if s.why != "" || chance >= doubtful {
		return
	}
	switch {
	case chance < hopeless && s.failed > 0, chance < silentHopeless && s.doesNotReport(now, interval) && d.owed >= enoughOwed:
		w.changed = true
		w.suspect(now, s, fmt.Sprintf("none of its %d open jobs got a response, while %d of %d jobs elsewhere did", d.owed, d.begun, elsewhere))
	case !s.reported.IsZero() && now.Sub(s.reported) >= pollAgain && now.Sub(s.polledEarly) >= pollAgain:
		s.polledEarly = now
		w.poll = append(w.poll, s.Address)
	}
}

// suspect makes an upstream that is trusted a suspect.
func (w *Watch) suspect(now time.Time, s *Suspicion, why string) {
	if s.why != "" {
		return
	}
	s.why, s.last, s.evidence = why, now, now
	w.add(s)
}

// add lists an upstream as suspect or hanging, so that its waiting jobs can be moved.
func (w *Watch) add(s *Suspicion) {
	if w.suspects == nil {
		w.suspects = map[string]bool{}
	}
	w.suspects[s.Address] = true
}
