package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lasting gives the joblets work that takes a time each.
func lasting(d time.Duration, joblets []Joblet) []Joblet {
	for i := range joblets {
		key := joblets[i].Key
		joblets[i].Work = func(ctx context.Context, input any) (Result, error) {
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
	e, err := New(Config{Cores: cores, CacheBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

func TestExecutorRunsAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 4)
		j := e.Submit(request(High, lasting(time.Second, chain("p", 1, "", ""))))
		defer j.Close()
		result, err := j.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "<nil> feed_source shared_operators operators output_feed", result.Value)
		assert.Equal(t, Facts{Started: true, Execution: 4 * time.Second, Fetch: time.Second}, j.Facts())

		again := e.Submit(request(High, lasting(time.Second, chain("p", 1, "", ""))))
		defer again.Close()
		cached, err := again.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, result, cached)
		assert.Equal(t, Facts{Started: true, Cached: true}, again.Facts())
	})
}

// TestHighJobOvertakes: on one core a high job runs between the joblets of a low
// one, which is paused but not interrupted.
func TestHighJobOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 1)
		var wg sync.WaitGroup
		begin := time.Now()
		submit := func(p Priority, project string, ends time.Duration) {
			j := e.Submit(request(p, lasting(10*time.Second, chain(project, 1, "", ""))))
			wg.Go(func() {
				defer j.Close()
				_, err := j.Wait(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, ends, time.Since(begin), project)
			})
		}
		submit(Low, "low", 80*time.Second)
		time.Sleep(5 * time.Second)
		submit(High, "high", 50*time.Second) // after the joblet that runs
		wg.Wait()
	})
}

func TestNeverMoreThanCores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cores = 3
		e := newExecutor(t, cores)
		var running, peak atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 * cores {
			joblets := lasting(time.Second, chain(fmt.Sprint(i), 1, "", ""))
			for k := range joblets {
				work := joblets[k].Work
				joblets[k].Work = func(ctx context.Context, input any) (Result, error) {
					peak.Store(max(peak.Load(), running.Add(1)))
					defer running.Add(-1)
					return work(ctx, input)
				}
			}
			j := e.Submit(request(Low, joblets))
			wg.Go(func() {
				defer j.Close()
				_, err := j.Wait(t.Context())
				assert.NoError(t, err)
			})
		}
		begin := time.Now()
		wg.Wait()
		assert.EqualValues(t, cores, peak.Load())
		assert.Equal(t, 6*4*time.Second, time.Since(begin), "no core is idle while a joblet waits")
	})
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 1)
		slow := e.Submit(Request{Chain: lasting(time.Minute, chain("slow", 1, "", "")), Queue: time.Second, Evaluate: 90 * time.Second})
		defer slow.Close()
		queued := e.Submit(Request{Chain: lasting(time.Minute, chain("queued", 1, "", "")), Queue: 5 * time.Second, Evaluate: time.Hour})
		defer queued.Close()

		begin := time.Now()
		_, err := queued.Wait(t.Context())
		require.ErrorIs(t, err, ErrQueueTimeout)
		assert.Equal(t, 5*time.Second, time.Since(begin))
		assert.False(t, queued.Facts().Started)

		_, err = slow.Wait(t.Context())
		assert.ErrorIs(t, err, ErrEvaluateTimeout)
		assert.Equal(t, 90*time.Second, time.Since(begin))
	})
}

func TestAwaitStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 1)
		first := e.Submit(request(Low, lasting(10*time.Second, chain("first", 1, "", ""))))
		defer first.Close()
		second := e.Submit(request(Low, lasting(10*time.Second, chain("second", 1, "", ""))))
		defer second.Close()
		impatient := e.Submit(Request{Chain: lasting(time.Second, chain("third", 1, "", "")), Priority: Low, Queue: 50 * time.Second})
		defer impatient.Close()

		begin := time.Now()
		require.NoError(t, first.AwaitStart(t.Context()))
		assert.Zero(t, time.Since(begin))
		require.NoError(t, second.AwaitStart(t.Context()))
		assert.Equal(t, 40*time.Second, time.Since(begin), "the joblets of the first job come first")
		assert.Equal(t, Facts{Started: true, Wait: 40 * time.Second}, second.Facts())
		require.NoError(t, impatient.AwaitStart(t.Context()))
		assert.Equal(t, 50*time.Second, time.Since(begin))
		assert.False(t, impatient.Facts().Started, "it ended without a start")
		_, err := second.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 80*time.Second, time.Since(begin))
		assert.NoError(t, second.AwaitStart(t.Context()), "it has started long ago")

		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		blocked := e.Submit(request(Low, lasting(time.Hour, chain("blocked", 1, "", ""))))
		defer blocked.Close()
		waits := e.Submit(request(Low, lasting(time.Hour, chain("waits", 1, "", ""))))
		defer waits.Close()
		assert.Equal(t, gone, waits.AwaitStart(ctx))
	})
}

// TestLeavingCancels: the joblets of a job that leaves do not run, but for those
// that another job shares.
func TestLeavingCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, 1)
		busy := e.Submit(request(Low, lasting(time.Second, chain("busy", 1, "", "")[:1])))
		defer busy.Close()
		alone := e.Submit(request(High, lasting(time.Second, chain("alone", 1, "", ""))))
		sharing := e.Submit(request(High, lasting(time.Second, chain("shared", 1, "s", "1"))))
		stays := e.Submit(request(Low, lasting(time.Second, chain("shared", 1, "s", "2"))))
		defer stays.Close()

		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		_, err := alone.Wait(ctx)
		assert.Equal(t, gone, err)
		alone.Close()
		sharing.Close()

		_, err = stays.Wait(t.Context())
		require.NoError(t, err)
		totals := e.Load().Totals
		assert.Equal(t, [kinds]uint64{}, totals.Started[High], "what stays is low")
		assert.Equal(t, [kinds]uint64{FeedSource: 2, SharedOperators: 1, Operators: 1, OutputFeed: 1}, totals.Started[Low])
	})
}

func TestFailureReachesAllThatShare(t *testing.T) {
	e := newExecutor(t, 1)
	broken := errors.New("broken")
	release := make(chan struct{})
	joblets := chain("p", 1, "", "")
	joblets[0].Work = func(context.Context, any) (Result, error) { <-release; return Result{}, broken }
	a, b := e.Submit(request(Low, joblets)), e.Submit(request(High, joblets))
	close(release)
	for _, j := range []*Job{a, b} {
		_, err := j.Wait(t.Context())
		assert.Equal(t, broken, err)
		j.Close()
	}
	load := e.Load()
	assert.Equal(t, [priorities]int{}, load.Running)
	assert.Equal(t, [priorities]int{}, load.Stalled)
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
			_, err := j.Wait(t.Context())
			assert.Error(t, err)
			j.Close()
		}
		assert.Zero(t, e.Load().Busy)
		assert.EqualValues(t, 1, e.Load().Totals.Started[Low][FeedSource], "nothing starts in a closed executor")
	})
}

func TestReplaceCache(t *testing.T) {
	e := newExecutor(t, 1)
	e.ReplaceCache([]Cached{{Key: Key{Project: "a"}}, {Key: Key{Project: "b", Version: 7}, Result: Result{Bytes: 5}}})
	projects, changes := e.Projects()
	require.Len(t, projects, 2)
	assert.Equal(t, "a", projects[0].Project)
	assert.Equal(t, int64(7), projects[1].Version)
	assert.Equal(t, int64(5), projects[1].Bytes)
	e.ReplaceCache(nil)
	projects, later := e.Projects()
	assert.Empty(t, projects)
	assert.Greater(t, later, changes)
}

func TestNewRefusesNonsense(t *testing.T) {
	for want, c := range map[string]Config{
		"cores: want 1 to 4096, got 0":        {},
		"cores: want 1 to 4096, got 5000":     {Cores: 5000},
		"cache bytes: want 0 or more, got -1": {Cores: 1, CacheBytes: -1},
	} {
		_, err := New(c)
		assert.EqualError(t, err, want)
	}
}
