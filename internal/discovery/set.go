package discovery

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/pool"
)

// arrange makes a full set of what a source said: sorted by address, without
// the sidecar's own addresses, one upstream for each address. The result is never
// nil and does not depend on the order of list.
func arrange(list []pool.Upstream, self selfAddresses) []pool.Upstream {
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

// same reports whether two arranged sets are equal.
func same(a, b []pool.Upstream) bool {
	return slices.EqualFunc(a, b, func(a, b pool.Upstream) bool { return preferred(a, b) == 0 })
}

// missing are the addresses of have that set lacks. Both are arranged.
func missing(have, set []pool.Upstream) []string {
	var gone []string
	for _, u := range have {
		if _, ok := find(set, u.Address); !ok {
			gone = append(gone, u.Address)
		}
	}
	return gone
}

// union adds to set the upstreams of have that it lacks. Both are arranged.
func union(set, have []pool.Upstream) []pool.Upstream {
	all := slices.Clone(set)
	for _, u := range have {
		if _, ok := find(set, u.Address); !ok {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, preferred)
	return all
}

func find(set []pool.Upstream, address string) (int, bool) {
	return slices.BinarySearchFunc(set, address, func(u pool.Upstream, a string) int {
		return cmp.Compare(u.Address, a)
	})
}
