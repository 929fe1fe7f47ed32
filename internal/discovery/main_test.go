package discovery

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.org/pilotfish/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// epoch is an instant like any other.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ups makes an arranged set of names such as "a b c"; each gets port 1.
func ups(names string) []pool.Upstream {
	var list []pool.Upstream
	for _, n := range strings.Fields(names) {
		list = append(list, pool.Upstream{Address: n + ":1"})
	}
	return arrange(list, nil)
}

// names is the inverse of ups; "-" is the empty set, "?" none at all.
func names(set []pool.Upstream) string {
	switch {
	case set == nil:
		return "?"
	case len(set) == 0:
		return "-"
	}
	var all []string
	for _, u := range set {
		all = append(all, strings.TrimSuffix(u.Address, ":1"))
	}
	return strings.Join(all, " ")
}
