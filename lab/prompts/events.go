package prompts

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/prompts"
)

// eventDelay is the age of an event when pilotfish gets it.
const eventDelay = 20 * time.Millisecond

// tokenize is the time until pilotfish has a prompt's tokens, which it needs with events. The library tokenizers takes 0.9 to
// 1.4 us a token on English text, and JSON 0.1 us.
func (r *rule) tokenize(j *job) time.Duration {
	if r.costs != nil || !r.events {
		return 0
	}
	return 5*time.Millisecond + time.Duration(j.Read)*2*time.Microsecond
}

// subscribe passes the events of a server's cache to a sidecar, as internal/report/events does: a block is known only if its prefix
// is known.
func (p *pilotfish) subscribe(w *world, s *server, address string) {
	known, missed := map[int64]bool{}, false
	s.changed = append(s.changed, func(c change) {
		if p.rng.Float64() < w.rule.lost {
			missed = true
			return
		}
		next := prompts.Change{Lost: missed}
		missed = false
		for _, b := range c.removed {
			delete(known, b)
			next.Removed = append(next.Removed, key([]int64{b}))
		}
		follows := true // the block before is known
		for _, b := range c.prompt {
			if stored := slices.Contains(c.stored, b) && !slices.Contains(c.removed, b); stored && follows {
				known[b] = true
				next.Stored = append(next.Stored, key([]int64{b}))
			}
			follows = known[b]
		}
		w.events.Add(w.now+eventDelay, 0, func() { p.pool.CacheChanged(w.time(), address, []prompts.Change{next}) })
	})
}
