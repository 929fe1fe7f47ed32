package discovery

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
)

// guard filters implausible replies of a source. A catalogue that restarts, or
// loses its leader or its data, returns errors, empty lists or partial lists for
// some seconds. Applying them would remove upstreams that still serve.
//
// A reply is in doubt if it is empty or lacks more than half of the last good
// set. After a doubt or a failure, a reply that lacks any upstream of that set is
// in doubt, too, because a catalogue recovers gradually. Additions and changes of
// a reply in doubt are applied at once. Removals are applied after consecutive
// replies have agreed on them for the hold time. A failure restarts the hold time.
//
// guard has no clock, no lock and no I/O.
type guard struct {
	// emptyAfter is how long replies must agree on emptiness; on a drop, a third of that. Replies
	// that disagree with each other are doubted for four times as long: then the next one that
	// is not empty is believed. 0 believes every reply at once.
	emptyAfter time.Duration

	good []pool.Upstream // the last set that was believed, here or by the Discovery before; nil is none
	// applied is good, or good joined with a doubtful reply. It is nil before the first reply, which
	// counts as a change whatever it says, because what is in force may have changed since.
	applied []pool.Upstream

	wary   bool // nothing has been believed since the last doubt or failure
	doubt  doubt
	since  time.Time // the first doubtful reply of this run
	steady time.Time // since when they agree
	gone   []string  // what of good the last one lacks
}

// ruling is the guard's decision on a reply.
type ruling struct {
	changed bool          // the set in force has changed
	doubt   doubt         // the reason why removed upstreams were kept
	hold    time.Duration // how long replies must agree before they are believed
	confirm time.Duration // how much of that is left
}

// doubt is the reason why a reply is in doubt, as a label for logs.
type doubt string

const (
	none      doubt = ""          // the reply was believed in full
	emptiness doubt = "emptiness" // it has no upstream
	drop      doubt = "drop"      // it lacks more than half of the good set, or any of it when the guard is wary
)

// inForce returns the set in force, nil before the first. The caller must not change it.
func (g *guard) inForce() []pool.Upstream {
	if g.applied == nil {
		return g.good // inherited
	}
	return g.applied
}

// fail records a failed query: the set stays, and the hold time of removals
// restarts.
func (g *guard) fail() { g.doubt, g.wary = none, true }

// judge decides on a reply. set is the arranged set that the source returned at now.
func (g *guard) judge(now time.Time, set []pool.Upstream) ruling {
	gone := missing(g.good, set)
	why := g.doubtOf(len(set), len(gone))
	if g.doubt == none {
		g.since = now
	}
	if why != g.doubt || !slices.Equal(g.gone, gone) {
		g.steady = now
	}
	g.doubt, g.gone = why, gone

	hold := g.emptyAfter
	left := g.steady.Add(hold).Sub(now)
	if why == drop {
		hold = g.emptyAfter / 3
		left = min(g.steady.Add(hold).Sub(now), g.since.Add(4*g.emptyAfter).Sub(now))
	}
	if why != none && left > 0 {
		g.wary = true
		return ruling{changed: g.good != nil && g.apply(union(set, g.good)), doubt: why, hold: hold, confirm: left}
	}
	g.doubt, g.wary, g.good = none, false, set
	return ruling{changed: g.apply(set)}
}

// doubtOf judges a reply of n upstreams that lacks gone of the good ones. Before
// the first set, emptiness is in doubt too: a catalogue that has just started
// knows nothing yet.
func (g *guard) doubtOf(n, gone int) doubt {
	switch {
	case n == 0 && (len(g.good) > 0 || g.good == nil):
		return emptiness
	case 2*gone > len(g.good), g.wary && gone > 0:
		return drop
	}
	return none
}

func (g *guard) apply(set []pool.Upstream) bool {
	if g.applied != nil && same(g.applied, set) {
		return false
	}
	g.applied = set
	return true
}

// arrange makes a full set of what a source said: sorted by address, without
// the sidecar's own addresses, one upstream for each address. The result is never
// nil and does not depend on the order of list.
func arrange(list []pool.Upstream, self map[string]bool) []pool.Upstream {
	set := make([]pool.Upstream, 0, len(list))
	for _, u := range list {
		if !self[u.Address] {
			set = append(set, u)
		}
	}
	slices.SortFunc(set, preferred)
	return slices.CompactFunc(set, func(a, b pool.Upstream) bool { return a.Address == b.Address })
}

// preferred orders by address. Of two entries for one address the one to believe
// comes first: the one with the newest start, because a server that comes back
// may leave its former registration behind.
func preferred(a, b pool.Upstream) int {
	return cmp.Or(
		cmp.Compare(a.Address, b.Address),
		b.StartedAt.Compare(a.StartedAt),
		b.StopsAt.Compare(a.StopsAt),
		strings.Compare(strconv.FormatBool(a.Draining), strconv.FormatBool(b.Draining)),
		cmp.Compare(b.Weight, a.Weight),
		cmp.Compare(b.Cores, a.Cores),
	)
}

// same reports whether two arranged sets are identical.
func same(a, b []pool.Upstream) bool {
	return slices.EqualFunc(a, b, func(a, b pool.Upstream) bool { return preferred(a, b) == 0 })
}

// missing returns the addresses that are in have and not in set. Both are arranged.
func missing(have, set []pool.Upstream) []string {
	var gone []string
	for _, u := range have {
		if _, ok := slices.BinarySearchFunc(set, u, byAddress); !ok {
			gone = append(gone, u.Address)
		}
	}
	return gone
}

// union adds to set the upstreams of have that it lacks. Both are arranged. Where that is more than a set may have, it
// leaves out new upstreams: those of have serve.
func union(set, have []pool.Upstream) []pool.Upstream {
	all := slices.Concat(set, have)
	slices.SortStableFunc(all, byAddress)
	all = slices.CompactFunc(all, func(a, b pool.Upstream) bool { return a.Address == b.Address })
	excess := len(all) - maxUpstreams
	return slices.DeleteFunc(all, func(u pool.Upstream) bool {
		if excess <= 0 {
			return false
		}
		_, known := slices.BinarySearchFunc(have, u, byAddress)
		if !known {
			excess--
		}
		return !known
	})
}

func byAddress(a, b pool.Upstream) int { return cmp.Compare(a.Address, b.Address) }
