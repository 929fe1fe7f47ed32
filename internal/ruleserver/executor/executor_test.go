package executor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lasting gives each joblet work that takes this time.
func lasting(d time.Duration, joblets []Joblet) []Joblet {
	for i := range joblets {
		key := joblets[i].Key
		joblets[i].Work = func(ctx context.Context, input any, _ int) (Result, error) {
			select {
			case <-time.After(d):
				return Result{Value: fmt.Sprint(input, " ", key.Kind)}, nil
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		}
	}
	return joblets
}

func newExecutor(t *testing.T, cores int) *Executor {
	e := New(cores, 1<<20, nil)
	t.Cleanup(e.Close)
	return e
}

func TestExecutorRunsAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 4)
		j := e.Submit(request(High, lasting(time.Second, chain("p", 1, "", ""))))
		defer e.Leave(j)
		result, err := e.Wait(t.Context(), j)
		require.NoError(t, err)
		assert.Equal(t, "<nil> feed_source shared_operators operators output_feed", result.Value)
		assert.Equal(t, Facts{Started: true, Execution: 4 * time.Second, Fetch: time.Second}, e.Facts(j))

		again := e.Submit(request(High, lasting(time.Second, chain("p", 1, "", ""))))
		defer e.Leave(again)
		cached, err := e.Wait(t.Context(), again)
		require.NoError(t, err)
		assert.Equal(t, result, cached)
		assert.Equal(t, Facts{Started: true, Cached: true}, e.Facts(again))
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 1)
		runs := e.Submit(request(Low, lasting(time.Hour, chain("runs", 1, "", ""))))
		waits := e.Submit(request(Low, lasting(time.Hour, chain("waits", 1, "", ""))))
		begin := time.Now()
		e.Close()
		assert.Zero(t, time.Since(begin))
		for _, j := range []*Job{runs, waits} {
			_, err := e.Wait(t.Context(), j)
			assert.Error(t, err)
			assert.Equal(t, j == runs, e.Facts(j).Started, "nothing starts in a closed executor")
			e.Leave(j)
		}
		assert.Zero(t, e.Load().Busy)
	})
}

// TestCacheMatchesNaive compares the cache with a plain list: the oldest entries are evicted first, and a new version of a
// project's feed source replaces the old ones.
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
			require.Equal(t, size(naive), c.used, "seed %d, step %d", seed, step)
			require.LessOrEqual(t, c.used, limit, "seed %d, step %d", seed, step)
			require.Len(t, c.entries, len(naive), "seed %d, step %d", seed, step)
			var projects []Cached
			for _, e := range naive {
				got, ok := c.get(e.Key)
				require.True(t, ok, "seed %d, step %d: no %v", seed, step, e.Key)
				require.Equal(t, e.Result, got, "seed %d, step %d", seed, step)
				if e.Key.Kind == FeedSource {
					projects = append(projects, e)
				}
			}
			require.ElementsMatch(t, projects, c.projects(), "seed %d, step %d", seed, step)
			require.True(t, slices.IsSortedFunc(c.projects(), func(a, b Cached) int { return a.Added.Compare(b.Added) }), "seed %d, step %d: projects are not in the order of their addition", seed, step)
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
