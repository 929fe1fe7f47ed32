package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCacheMatchesNaive compares the cache with a plain list.
func TestCacheMatchesNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		limit := int64(rng.IntN(3000))
		c := newCache(limit)
		var naive []Cached
		for step := range 200 {
			key := Key{Kind(rng.IntN(4)), fmt.Sprint(rng.IntN(4)), int64(rng.IntN(2)), ""}
			added := Cached{key, Result{Value: step, Bytes: int64(rng.IntN(600))}, epoch.Add(time.Duration(step))}
			c.put(added.Added, key, added.Result)

			has := slices.ContainsFunc(naive, func(e Cached) bool { return e.Key == key })
			if !has && added.Result.Bytes+entryOverhead <= limit {
				if key.Kind == FeedSource {
					naive = slices.DeleteFunc(naive, func(e Cached) bool {
						return e.Key.Project == key.Project && e.Key.Version != key.Version
					})
				}
				naive = append(naive, added)
				for size(naive) > limit {
					naive = naive[1:]
				}
			}
			require.Equal(t, size(naive), c.used)
			require.LessOrEqual(t, c.used, limit)
			require.Len(t, c.entries, len(naive))
			var projects []Cached
			for _, e := range naive {
				got, ok := c.get(e.Key)
				require.True(t, ok)
				require.Equal(t, e.Result, got)
				if e.Key.Kind == FeedSource {
					projects = append(projects, e)
				}
			}
			require.ElementsMatch(t, projects, c.projects())
			require.True(t, slices.IsSortedFunc(c.projects(), func(a, b Cached) int { return a.Added.Compare(b.Added) }))
		}
		c.clear()
		require.Zero(t, c.used)
		require.Empty(t, c.entries)
	}
}

func size(entries []Cached) (n int64) {
	for _, e := range entries {
		n += e.Result.Bytes + entryOverhead
	}
	return n
}
