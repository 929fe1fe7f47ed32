package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Watch compares the responses that upstreams owe, and knows the suspects. interval is the mean time between two reports
// of one upstream. The zero value is ready to use.
type Watch struct {
	claims   uint64       // so far
	owing    []*Suspicion // all upstreams that owe responses; some no longer do
	suspects map[string]bool
	poll     []string // addresses of upstreams that should report at once
	changed  bool     // a suspect was found or something was reported, since Suspects was last called
}

// Claims is the number of claims so far, which is that of the last claim.
func (w *Watch) Claims() uint64 { return w.claims }

// Poll returns the addresses of the upstreams that should report at once, each once: they owe responses for longer than is
// usual.
func (w *Watch) Poll() (addresses []string) {
	addresses, w.poll = w.poll, nil
	return addresses
}

// Suspects returns the suspects by address, if something changed since the last call. It forgets those for which keep is
// false until they get a job.
func (w *Watch) Suspects(keep func(address string) bool) []string {
	if !w.changed {
		return nil
	}
	w.changed = false
	maps.DeleteFunc(w.suspects, func(address string, _ bool) bool { return !keep(address) })
	if len(w.suspects) == 0 { // as nearly always: sorting none allocates, and each job ends here
		return nil
	}
	return slices.Sorted(maps.Keys(w.suspects))
}

// Hint records that an upstream reported with a response.
func (w *Watch) Hint() { w.changed = true }

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
		w.suspects[s.Address] = true
	}
	w.weigh(now, s, interval)
	return w.claims
}

// Responded records the start of a response to the claim of that number. The upstream is trusted from now on, and the
// response is evidence against others.
func (w *Watch) Responded(now time.Time, s *Suspicion, number uint64, interval time.Duration) {
	s.why, s.responded, s.debt.owed = "", now, 0
	w.owing = slices.DeleteFunc(w.owing, func(other *Suspicion) bool {
		other.listed = other.debt.owed > 0
		return !other.listed
	})
	for _, other := range w.owing {
		if !other.left && number >= other.debt.from {
			other.debt.begun++
			if other.doesNotReport(now, interval) { // it may get no job for long: the responses elsewhere are evidence, too
				w.weigh(now, other, interval)
			}
		}
	}
}

// Reported records a report of an upstream, which was in that state at an instant. The upstream is trusted from now on.
func (w *Watch) Reported(at time.Time, s *Suspicion) {
	s.reported, s.why, s.failed, s.dead = at, "", 0, false
	w.changed = true
}

// ReportFailed records that a report could not be fetched or read. After two in a row the upstream is suspect, unless a
// response has begun in between. An upstream that has never reported is judged by its responses alone.
func (w *Watch) ReportFailed(now time.Time, s *Suspicion, why error, interval time.Duration) {
	if s.reported.IsZero() {
		return
	}
	w.changed = true
	s.dead = errors.Is(why, ErrNoResponse)
	if s.failed++; s.failed == 1 {
		s.firstFailed = now
	}
	if s.failed >= reportsInARow && s.responded.Before(s.firstFailed) {
		w.suspect(now, s, fmt.Sprintf("%d polls in a row failed, and no response began since: %v", s.failed, Root(why)))
		return
	}
	w.weigh(now, s, interval)
}

// weigh compares the responses that an upstream owes with those of the others.
func (w *Watch) weigh(now time.Time, s *Suspicion, interval time.Duration) {
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
	s.why, s.last = why, now
	if w.suspects == nil {
		w.suspects = map[string]bool{}
	}
	w.suspects[s.Address] = true
}
