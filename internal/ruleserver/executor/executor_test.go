package executor

import (
	"context"
	"fmt"
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
