package discovery

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestArrange(t *testing.T) {
	me := selfAddresses{"me:1": true}
	assert.Equal(t, "a b c", names(arrange([]pool.Upstream{
		{Address: "c:1"}, {Address: "me:1"}, {Address: "a:1"}, {Address: "b:1"}, {Address: "a:1"},
	}, me)))
	assert.NotNil(t, arrange(nil, me))
}

func TestArrangeBelievesTheNewestStart(t *testing.T) {
	old := pool.Upstream{Address: "a:1", StartedAt: epoch, Draining: true, Weight: 5}
	young := pool.Upstream{Address: "a:1", StartedAt: epoch.Add(time.Hour)}
	assert.Equal(t, []pool.Upstream{young}, arrange([]pool.Upstream{old, young}, nil))
	assert.Equal(t, []pool.Upstream{young}, arrange([]pool.Upstream{young, old}, nil))
}

// TestArrangeForgetsTheOrder shuffles random lists.
func TestArrangeForgetsTheOrder(t *testing.T) {
	rng := seeded()
	for range 500 {
		var list []pool.Upstream
		for range rng.IntN(12) {
			list = append(list, pool.Upstream{
				Address: string(rune('a'+rng.IntN(4))) + ":1", Weight: float64(rng.IntN(2)), Cores: rng.IntN(2),
				StartedAt: epoch.Add(time.Duration(rng.IntN(2)) * time.Hour), Draining: rng.IntN(2) == 0,
			})
		}
		set := arrange(list, nil)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		require.Equal(t, set, arrange(list, nil))
		require.True(t, same(set, arrange(list, nil)))

		var addresses []string
		for _, u := range set {
			addresses = append(addresses, u.Address)
		}
		require.True(t, slices.IsSorted(addresses))
		require.Len(t, slices.Compact(addresses), len(set))
		for _, u := range list {
			require.Contains(t, addresses, u.Address)
		}
	}
}

func TestSameSeesEveryFact(t *testing.T) {
	base := pool.Upstream{Address: "a:1", Weight: 1, Cores: 2, StartedAt: epoch, StopsAt: epoch}
	for _, change := range []func(*pool.Upstream){
		func(u *pool.Upstream) { u.Address = "b:1" },
		func(u *pool.Upstream) { u.Weight = 2 },
		func(u *pool.Upstream) { u.Cores = 3 },
		func(u *pool.Upstream) { u.StartedAt = epoch.Add(1) },
		func(u *pool.Upstream) { u.StopsAt = epoch.Add(1) },
		func(u *pool.Upstream) { u.Draining = true },
	} {
		other := base
		change(&other)
		assert.False(t, same([]pool.Upstream{base}, []pool.Upstream{other}))
	}
	zone := base
	zone.StartedAt = epoch.In(time.FixedZone("x", 3600))
	assert.True(t, same([]pool.Upstream{base}, []pool.Upstream{zone}), "the same instant elsewhere")
}
