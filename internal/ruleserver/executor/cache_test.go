package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCacheMatchesNaive compares the cache with a plain list.
func TestCacheMatchesNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		limit := int64(rng.IntN(3000))
		c := newCache(limit)
		var naive []entry
		evictions := uint64(0)
		for step := range 200 {
			key := Key{Kinds()[rng.IntN(4)], fmt.Sprint(rng.IntN(4)), int64(rng.IntN(2)), ""}
			added := entry{key, Result{Value: step, Bytes: int64(rng.IntN(600))}, epoch.Add(time.Duration(step))}
			c.put(added.added, key, added.result)

			has := slices.ContainsFunc(naive, func(e entry) bool { return e.key == key })
			if !has && added.result.Bytes+entryOverhead <= limit {
				if key.Kind == FeedSource {
					naive = slices.DeleteFunc(naive, func(e entry) bool {
						return e.key.Project == key.Project && e.key.Version != key.Version
					})
				}
				naive = append(naive, added)
				for size(naive) > limit {
					naive = naive[1:]
					evictions++
				}
			}
			require.Equal(t, size(naive), c.used)
			require.LessOrEqual(t, c.used, limit)
			require.Equal(t, evictions, c.evictions)
			require.Len(t, c.entries, len(naive))
			var projects []CachedProject
			for _, e := range naive {
				got, ok := c.get(e.key)
				require.True(t, ok)
				require.Equal(t, e.result, got)
				if e.key.Kind == FeedSource {
					projects = append(projects, CachedProject{e.key.Project, e.key.Version, e.result.Bytes, e.added})
				}
			}
			require.ElementsMatch(t, projects, c.listProjects())
			require.True(t, slices.IsSortedFunc(c.listProjects(), func(a, b CachedProject) int { return a.Added.Compare(b.Added) }))
		}
		c.clear()
		require.Zero(t, c.used)
		require.Empty(t, c.projects)
	}
}

func size(entries []entry) (n int64) {
	for _, e := range entries {
		n += e.result.Bytes + entryOverhead
	}
	return n
}

// TestCacheChanges: whoever remembers the number of changes sees each one.
func TestCacheChanges(t *testing.T) {
	c := newCache(1000)
	c.put(epoch, Key{Project: "a"}, Result{})
	before := c.changes
	c.put(epoch, Key{Project: "a"}, Result{}) // is there
	c.put(epoch, Key{Project: "b"}, Result{Bytes: 1000})
	assert.Equal(t, before, c.changes)
	c.put(epoch, Key{Project: "b"}, Result{Bytes: 700})
	assert.Greater(t, c.changes, before)
}
