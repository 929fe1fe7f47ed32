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
// A reply is in doubt if it lacks more than half of the last accepted set, or if it is
// empty, unless the last accepted set was empty, too. After a reply in doubt or a failed
// query, each reply that lacks any upstream of the last accepted set is in doubt until a
// reply is accepted, because a catalogue recovers gradually. Additions and changes in
// a reply in doubt are applied at once. Removals are applied after consecutive
// replies have agreed on them for the hold time. A failure restarts the hold time.
//
// guard has no clock, no lock and no I/O.
type guard struct {
	// emptyAfter is the hold time of an empty list. The hold time of a list that lacks upstreams is a third of it. If
	// replies disagree with each other for four times emptyAfter, the next one that is not
	// empty is accepted. 0 accepts every reply at once.
	emptyAfter time.Duration

	good []pool.Upstream // the last accepted set, also of the replaced Discovery; nil if there is none
	// applied is good, or the union of good and a reply in doubt. It is nil before the first reply. That
	// always counts as a change, because the upstreams in use may have changed since New.
	applied []pool.Upstream

	recovering  bool // no reply has been accepted since the last doubt or failure
	doubt       doubt
	since       time.Time // the first of the consecutive replies in doubt
	agreedSince time.Time // the first of the consecutive replies that lack the same upstreams
	gone        []string  // addresses in good that the last reply lacks
}

// verdict is the guard's decision on a reply.
type verdict struct {
	changed bool          // the current set has changed
	doubt   doubt         // why removed upstreams were kept
	hold    time.Duration // how long replies must agree before removals are applied
	confirm time.Duration // the rest of hold
}

// doubt is the reason why a reply is in doubt, as a label for logs.
type doubt string

const (
	none      doubt = ""          // the reply was accepted in full
	emptiness doubt = "emptiness" // it has no upstream
	drop      doubt = "drop"      // it lacks more than half of the accepted set, or any upstream of it while recovering
)

// current returns the set in use; nil before the first. The caller must not change it.
func (g *guard) current() []pool.Upstream {
	if g.applied == nil {
		return g.good // from the replaced Discovery
	}
	return g.applied
}

// fail records a failed query: the set stays, and the hold time of removals
// restarts.
func (g *guard) fail() { g.doubt, g.recovering = none, true }

// decide decides on a reply, the arranged set that the source returned at now.
func (g *guard) decide(now time.Time, set []pool.Upstream) verdict {
	gone := missing(g.good, set)
	why := g.doubtOf(len(set), len(gone))
	if g.doubt == none {
		g.since = now
	}
	if why != g.doubt || !slices.Equal(g.gone, gone) {
		g.agreedSince = now
	}
	g.doubt, g.gone = why, gone

	hold := g.emptyAfter
	left := g.agreedSince.Add(hold).Sub(now)
	if why == drop {
		hold = g.emptyAfter / 3
		left = min(g.agreedSince.Add(hold).Sub(now), g.since.Add(4*g.emptyAfter).Sub(now))
	}
	if why != none && left > 0 {
		g.recovering = true
		return verdict{changed: g.good != nil && g.apply(union(set, g.good)), doubt: why, hold: hold, confirm: left}
	}
	g.doubt, g.recovering, g.good = none, false, set
	return verdict{changed: g.apply(set)}
}

// doubtOf returns why a reply is in doubt. It has n upstreams and lacks gone of the
// accepted ones. Before the first set an empty reply is in doubt too, because a
// catalogue that has just started knows no instances yet.
func (g *guard) doubtOf(n, gone int) doubt {
	switch {
	case n == 0 && (len(g.good) > 0 || g.good == nil):
		return emptiness
	case 2*gone > len(g.good), g.recovering && gone > 0:
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

// arrange turns a source's list into a set: sorted by address, without the
// sidecar's own addresses, one upstream for each address. The result is never
// nil and does not depend on the order of list.
func arrange(list []pool.Upstream, self own) []pool.Upstream {
	set := make([]pool.Upstream, 0, len(list))
	for _, u := range list {
		if !self.has(u.Address) {
			set = append(set, u)
		}
	}
	slices.SortFunc(set, preferred)
	return slices.CompactFunc(set, func(a, b pool.Upstream) bool { return a.Address == b.Address })
}

// preferred orders by address. Of two entries for one address, the one that started
// last is first: a restarted server may have left its old registration behind.
func preferred(a, b pool.Upstream) int {
	return cmp.Or(
		cmp.Compare(a.Address, b.Address),
		b.StartedAt.Compare(a.StartedAt),
		b.StopsAt.Compare(a.StopsAt),
		compareBools(a.Draining, b.Draining),
		cmp.Compare(b.Weight, a.Weight),
		cmp.Compare(b.Cores, a.Cores),
		compareBools(a.Heavy, b.Heavy),
	)
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	return strings.Compare(strconv.FormatBool(a), strconv.FormatBool(b))
}

// same reports whether two arranged sets are identical.
func same(a, b []pool.Upstream) bool {
	return slices.EqualFunc(a, b, func(a, b pool.Upstream) bool { return preferred(a, b) == 0 })
}

// missing returns the addresses in have that set lacks. Both sets are results of arrange.
func missing(have, set []pool.Upstream) []string {
	var gone []string
	for _, u := range have {
		if _, ok := slices.BinarySearchFunc(set, u, byAddress); !ok {
			gone = append(gone, u.Address)
		}
	}
	return gone
}

// union returns set with the upstreams of have that it lacks. Both sets are results of arrange. If the result would exceed
// maxUpstreams, new upstreams are dropped first: those of have are known to serve.
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
