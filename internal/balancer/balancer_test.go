package balancer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/balancing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBalancer returns a balancer of n upstreams. Breakers do not open, unless the number of
// failures is given.
func newBalancer(t *testing.T, n int, queue dispatch.QueueSettings, hooks balancer.Hooks, failures ...int) *balancer.Balancer {
	t.Helper()
	s := balancing.Setup{Queue: queue, Hooks: hooks, Failures: append(failures, balancing.NoBreaker)[0]}
	b, _ := balancing.New(t, s, balancing.Addresses(n)...)
	return b
}

// claim submits a job that arrives now, and claims an upstream for it.
func claim(ctx context.Context, b *balancer.Balancer, r dispatch.Request) (*balancer.Lease, error) {
	r.Arrived = time.Now()
	return b.Claim(ctx, r.Arrived, b.Begin(r))
}

// claimed is claim for a job that gets an upstream.
func claimed(t *testing.T, b *balancer.Balancer, r dispatch.Request) *balancer.Lease {
	t.Helper()
	l, err := claim(t.Context(), b, r)
	require.NoError(t, err)
	return l
}

// withdrawal is the Withdraw of a job that is notified when it is moved.
type withdrawal chan struct{}

func (w withdrawal) Withdraw() bool {
	select {
	case w <- struct{}{}:
		return true
	default:
		return false
	}
}

func bounded(jobs int) dispatch.QueueSettings {
	q := dispatch.DefaultQueue()
	q.Jobs = jobs
	return q
}

var address = balancing.Address

// load reports that the upstream is overloaded, or that it is idle. It needs fake time.
func load(b *balancer.Balancer, i int, stalled float64) {
	b.Report(address(i), balancing.Report(stalled))
	time.Sleep(time.Nanosecond) // the time of the next report must be later
}

func TestRunServesWhenOnlyTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		ctx, cancel := context.WithCancel(t.Context())
		go b.Run(ctx)
		load(b, 0, 1000)
		begun := time.Now()
		l := claimed(t, b, dispatch.Request{Queue: time.Minute})
		assert.InDelta(t, 15, time.Since(begun).Seconds(), 0.2, "the report is stale after 15 s")
		l.Done(time.Now(), pool.Answered)
		cancel()
		synctest.Wait()
	})
}

// Many jobs that one report lets go are granted in steps, without waiting for another event.
func TestManyGrantsAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, bounded(5000), balancer.Hooks{})
		ctx, cancel := context.WithCancel(t.Context())
		go b.Run(ctx)
		load(b, 0, 1000)
		var jobs sync.WaitGroup
		for range 5000 {
			jobs.Go(func() {
				_, err := claim(t.Context(), b, dispatch.Request{Queue: time.Minute})
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		before := time.Now()
		load(b, 0, 0)
		jobs.Wait()
		assert.Less(t, time.Since(before), 10*time.Millisecond, "in fake time")
		cancel()
		synctest.Wait()
	})
}

func TestEndsOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queued, left atomic.Int32
		var waited atomic.Int64
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{
			Queued: func(selection.Priority) { queued.Add(1) },
			Left:   func(_ selection.Priority, d time.Duration) { left.Add(1); waited.Store(int64(d)) },
		})
		load(b, 0, 1000)
		_, err := claim(t.Context(), b, dispatch.Request{Queue: 3 * time.Second})
		require.ErrorIs(t, err, dispatch.ErrWaited)
		assert.Equal(t, 3*time.Second, time.Duration(waited.Load()))
		load(b, 0, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = claim(ctx, b, dispatch.Request{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		load(b, 0, 1000)
		arrived := time.Now()
		_, err = claim(t.Context(), b, dispatch.Request{Evaluate: time.Second, Stream: time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2*time.Second, time.Since(arrived), "the job's deadline")
		assert.Equal(t, queued.Load(), left.Load())
		_, waiting := b.Counts()
		assert.Zero(t, waiting)
	})
}

// Dismiss ends the waits of all queued jobs, but only while no upstream is known.
func TestDismiss(t *testing.T) {
	for upstreams, want := range map[int]error{0: assert.AnError, 1: dispatch.ErrWaited} {
		synctest.Test(t, func(t *testing.T) {
			b := newBalancer(t, upstreams, dispatch.DefaultQueue(), balancer.Hooks{})
			load(b, 0, 1000)
			ends := make(chan error, 3)
			for range cap(ends) {
				go func() {
					_, err := claim(t.Context(), b, dispatch.Request{Queue: 3 * time.Second})
					ends <- err
				}()
			}
			synctest.Wait()
			b.Dismiss(assert.AnError)
			for range cap(ends) {
				require.ErrorIs(t, <-ends, want)
			}
			_, waiting := b.Counts()
			assert.Zero(t, waiting)
		})
	}
}

// Many goroutines claim, abandon and end while upstreams join, leave and report. At the
// end no job is in flight and no job waits (invariants 1 to 3).
func TestConservationUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 4, bounded(20), balancer.Hooks{}, 5)
		ctx, cancel := context.WithCancel(t.Context())
		go b.Run(ctx)
		var claims, ends, moved atomic.Int64
		var jobs sync.WaitGroup
		for g := range uint64(50) {
			jobs.Go(func() {
				rng := rand.New(rand.NewPCG(g, 3))
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(3000))*time.Millisecond)
					withdrawn := make(withdrawal, 1)
					j := b.Begin(dispatch.Request{Project: rng.Uint64N(10), Priority: selection.Priority(rng.IntN(2)), Withdraw: withdrawn})
					for again := true; again; {
						again = false
						select {
						case <-withdrawn: // the withdrawal was too late
						default:
						}
						l, err := b.Claim(ctx, time.Now(), j)
						if err != nil {
							break
						}
						claims.Add(1)
						select {
						case <-withdrawn:
							again = l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Moved, Progress: dispatch.Begun, Repeatable: true}).Again
							assert.True(t, again, "its place is claimed already")
							ends.Add(1)
							moved.Add(1)
							continue
						case <-time.After(time.Duration(rng.IntN(500)) * time.Millisecond):
						}
						switch rng.IntN(4) {
						case 0:
							l.Done(time.Now(), pool.Outcome(rng.IntN(pool.Outcomes)))
						case 1:
							l.Answered(time.Now(), true, nil)
							l.Done(time.Now(), pool.Outcome(rng.IntN(pool.Outcomes)))
						default:
							next := l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Refused, Stale: rng.IntN(2) == 0, Repeatable: true})
							time.Sleep(next.Pause)
							again = next.Again
						}
						ends.Add(1)
					}
					cancel()
				}
			})
		}
		changes := rand.New(rand.NewPCG(9, 9))
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			if changes.IntN(5) == 0 {
				set := make([]pool.Upstream, changes.IntN(5))
				for i := range set {
					set[i].Address = address(i)
				}
				b.Set(set)
			}
			load(b, changes.IntN(4), float64(changes.IntN(200)))
			balancing.Hang(b, address(changes.IntN(4)))
		}
		b.Set([]pool.Upstream{{Address: address(0)}})
		jobs.Wait()
		inFlight, waiting := b.Counts()
		assert.Zero(t, inFlight)
		assert.Zero(t, waiting)
		assert.Positive(t, claims.Load())
		assert.Positive(t, moved.Load())
		assert.Equal(t, claims.Load(), ends.Load())
		cancel()
		synctest.Wait()
	})
}

// An upstream whose responses are overdue is polled at once.
func TestOverdueResponsesCauseAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		b := newBalancer(t, 2, dispatch.DefaultQueue(), balancer.Hooks{PollNow: func(address string) { asked = append(asked, address) }})
		load(b, 0, 0)
		load(b, 1, 0)
		time.Sleep(11 * time.Second) // the reports are old: responses elsewhere are evidence, too
		for range 100 {
			l := claimed(t, b, dispatch.Request{})
			if l.Address == address(1) {
				l.Answered(time.Now(), true, nil)
				l.Done(time.Now(), pool.Answered)
			}
		}
		assert.Equal(t, []string{address(0)}, asked)
	})
}

// A panic under the mutex releases it.
func TestPanicReleasesTheMutex(t *testing.T) {
	b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
	load(b, 0, 1000)
	for _, bug := range []func(){
		func() { _, _ = claim(t.Context(), b, dispatch.Request{Priority: selection.Priorities}) },
		func() { b.SetSettings(balancer.Settings{}) },
	} {
		assert.Panics(t, bug)
		require.Eventually(t, b.Ready, time.Minute, time.Millisecond)
	}
}

// Changed settings apply to the pool, the breakers and the dispatcher at once.
func TestOtherSettingsAreInForceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		set := balancer.Settings{
			Pool:  pool.Settings{Policy: selection.Random{}, Interval: time.Minute, Breaker: health.Default()},
			Retry: dispatch.DefaultRetry(), Queue: bounded(1), Projects: dispatch.ProjectSettings{PerMinute: 1},
		}
		set.Pool.Breaker.Failures, set.Retry.Attempts = 1, 1
		b.SetSettings(set)
		load(b, 0, 0)
		time.Sleep(2 * time.Minute)
		assert.True(t, b.States()[0].ReportFresh, "by the longer interval")
		l := claimed(t, b, dispatch.Request{Project: 7})
		_, err := claim(t.Context(), b, dispatch.Request{Project: 7})
		assert.ErrorIs(t, err, dispatch.ErrRate)
		next := l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Begun, Repeatable: true})
		assert.False(t, next.Again, "one attempt is all")
		assert.Equal(t, health.Open, b.States()[0].Breaker.State, "one failure opens it")
		load(b, 0, 1000)
		go func() { _, _ = claim(t.Context(), b, dispatch.Request{Queue: time.Second}) }()
		synctest.Wait()
		_, err = claim(t.Context(), b, dispatch.Request{})
		assert.ErrorIs(t, err, dispatch.ErrFull)
	})
}

// States lists each upstream once, in order, in any number of steps.
func TestStatesOfManyUpstreams(t *testing.T) {
	for _, n := range []int{0, 1, 499, 500, 501, 1000, 2300} {
		b := newBalancer(t, n, dispatch.DefaultQueue(), balancer.Hooks{})
		states := b.States()
		assert.Len(t, states, n)
		assert.True(t, slices.IsSortedFunc(states, func(a, b pool.State) int { return strings.Compare(a.Address, b.Address) }))
		assert.Len(t, slices.CompactFunc(states, func(a, b pool.State) bool { return a.Address == b.Address }), n)
	}
}

// Holders returns the same for many projects as for each one.
func TestHoldersOfManyProjects(t *testing.T) {
	b := newBalancer(t, 3, dispatch.DefaultQueue(), balancer.Hooks{})
	var projects []uint64
	want := map[uint64][]string{}
	for project := range uint64(20) {
		l := claimed(t, b, dispatch.Request{Project: project + 1})
		projects, want[project+1] = append(projects, project+1), []string{l.Address}
	}
	assert.Equal(t, want, b.Holders(projects))
}
