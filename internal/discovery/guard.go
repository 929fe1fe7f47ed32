package discovery

import (
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Defaults of GuardConfig.
const (
	DefaultHoldEmpty = 30 * time.Second
	DefaultHoldDrop  = 10 * time.Second
	DefaultPatience  = 2 * time.Minute
)

// GuardConfig says how long a doubtful answer must be repeated before it is
// believed. Zero values mean the defaults.
type GuardConfig struct {
	// HoldEmpty is for an answer without any upstream; default 30 s.
	HoldEmpty time.Duration
	// HoldDrop is for one that lacks many upstreams, or some after a doubt or a
	// failure; default 10 s.
	HoldDrop time.Duration
	// Patience is for a run of doubtful answers that disagree with each other: when it has
	// lasted so long, the next one that is not empty is believed; default 2 min.
	Patience time.Duration
}

func (c GuardConfig) withDefaults() (GuardConfig, error) {
	for _, f := range []struct {
		name string
		d    *time.Duration
		or   time.Duration
	}{
		{"hold for an empty answer", &c.HoldEmpty, DefaultHoldEmpty},
		{"hold for a drop", &c.HoldDrop, DefaultHoldDrop},
		{"patience", &c.Patience, DefaultPatience},
	} {
		if *f.d < 0 {
			return c, fmt.Errorf("%s of %s: want a positive duration", f.name, *f.d)
		}
		if *f.d == 0 {
			*f.d = f.or
		}
	}
	return c, nil
}

// Guard stands between what a source says and what is applied. A catalogue
// that restarts, loses its leader or its data answers with errors, with nothing, or with
// half of the truth, for seconds, and would take the upstreams away that still serve.
//
// So an answer that is empty, or that lacks more than half of the last good set, is in
// doubt; and from then on, as after a failure, so is one that lacks any of it, because a
// catalogue recovers bit by bit. What a doubtful answer adds or changes applies at
// once, but what it lacks stays, until answers have agreed for the hold on what is
// gone. A failure tells nothing, and the hold begins anew after it.
//
// Guard is a value without clock, lock or I/O.
type Guard struct {
	cfg     GuardConfig
	known   bool            // there is a good set, even if it is empty
	good    []pool.Upstream // the last set that was believed
	applied []pool.Upstream // good, or good joined with a doubtful answer

	wary   bool // nothing has been believed since the last doubt or failure
	doubt  Doubt
	since  time.Time // the first doubtful answer of this run
	steady time.Time // since when they agree
	gone   []string  // what of good the last one lacks
}

// NewGuard returns a guard that knows no set yet. It refuses negative durations.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Guard{cfg: cfg}, nil
}

// Known reports whether there is a good set.
func (g *Guard) Known() bool { return g.known }

// Applied is the set in force, nil before the first. It must not be changed.
func (g *Guard) Applied() []pool.Upstream {
	if g.applied == nil {
		return g.good // inherited
	}
	return g.applied
}

// Restore makes set, which must be arranged, the good set without any doubt.
func (g *Guard) Restore(set []pool.Upstream) {
	*g = Guard{cfg: g.cfg, known: true, good: set, applied: set}
}

// Inherit makes set, which must be arranged, the good set of a guard that knows
// none yet. The next answer counts as a change whatever it says, for what is in
// force may have changed since.
func (g *Guard) Inherit(set []pool.Upstream) { g.known, g.good = true, set }

// Fail takes note of an answer that did not come: the set stays, and
// what was in doubt must be confirmed from the start.
func (g *Guard) Fail() { g.doubt, g.wary = None, true }

// Answer takes the arranged set that the source gave at now.
func (g *Guard) Answer(now time.Time, set []pool.Upstream) Ruling {
	gone := missing(g.good, set)
	g.judge(now, g.doubtOf(len(set), len(gone)), gone)

	if left := g.left(now); left > 0 {
		g.wary = true
		return Ruling{Changed: g.known && g.apply(union(set, g.good)), Doubt: g.doubt, Confirm: left}
	}
	g.doubt, g.wary, g.known, g.good = None, false, true, set
	return Ruling{Changed: g.apply(set)}
}

// doubtOf judges an answer of n upstreams that lacks gone of the good ones. Before the
// first set, emptiness is in doubt too: a catalogue that has just
// started knows nothing yet.
func (g *Guard) doubtOf(n, gone int) Doubt {
	switch {
	case n == 0 && (len(g.good) > 0 || !g.known):
		return Emptiness
	case 2*gone > len(g.good), g.wary && gone > 0:
		return Drop
	}
	return None
}

// judge takes note of one more answer's doubt.
func (g *Guard) judge(now time.Time, d Doubt, gone []string) {
	if g.doubt == None {
		g.since = now
	}
	if d != g.doubt || !slices.Equal(g.gone, gone) {
		g.steady = now
	}
	g.doubt, g.gone = d, gone
}

// left is for how long answers must still agree; at most 0 is long enough.
func (g *Guard) left(now time.Time) time.Duration {
	switch g.doubt {
	case Emptiness:
		return g.steady.Add(g.cfg.HoldEmpty).Sub(now)
	case Drop:
		return min(g.steady.Add(g.cfg.HoldDrop).Sub(now), g.since.Add(g.cfg.Patience).Sub(now))
	}
	return 0
}

func (g *Guard) apply(set []pool.Upstream) bool {
	if g.applied != nil && same(g.applied, set) {
		return false
	}
	g.applied = set
	return true
}
