// Package balancing builds what a sidecar has behind its ports, for tests: a balancer over a dispatcher and a pool, with the
// default settings and fixed random sources.
package balancing

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// Setup is what a test varies. The zero value has the default settings.
type Setup struct {
	Pool     pool.Settings // by default least-in-flight, and reports every 5 s
	Overload string        // the policy of overload detection, by default "threshold" with 100 stalled joblets
	Failures int           // that open a breaker, by default as health.Default
	Retry    dispatch.RetrySettings
	Queue    dispatch.QueueSettings
	Projects dispatch.ProjectSettings
	Hooks    balancer.Hooks
	Rand     *rand.Rand
}

// NoBreaker is a number of failures that no test reaches.
const NoBreaker = 1e6

// New returns a balancer that knows these upstreams, and its pool.
func New(t testing.TB, s Setup, upstreams ...string) (*balancer.Balancer, *pool.Pool) {
	t.Helper()
	if s.Pool.Policy == nil {
		s.Pool.Policy = selection.LeastInFlight{}
	}
	if s.Pool.Detector == nil {
		detector, err := overload.Settings{Policy: cmp.Or(s.Overload, "threshold"), Stalled: 100, Reset: 0.8}.Detector()
		require.NoError(t, err)
		s.Pool.Detector = detector
	}
	s.Pool.Interval = cmp.Or(s.Pool.Interval, 5*time.Second)
	s.Pool.Breaker = health.Default()
	s.Pool.Breaker.Failures = cmp.Or(s.Failures, s.Pool.Breaker.Failures)
	if s.Retry.Attempts == 0 {
		s.Retry = dispatch.DefaultRetry()
	}
	s.Queue = cmp.Or(s.Queue, dispatch.DefaultQueue())
	if s.Rand == nil {
		s.Rand = rand.New(rand.NewPCG(1, 2))
	}
	p, err := pool.New(pool.Config{Settings: s.Pool, Gate: breaker.New, Rand: s.Rand})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: s.Rand, Retry: s.Retry, Queue: s.Queue, Projects: s.Projects})
	require.NoError(t, err)
	b := balancer.New(d, s.Hooks)
	set := make([]pool.Upstream, len(upstreams))
	for i, address := range upstreams {
		set[i].Address = address
	}
	b.Set(set)
	return b, p
}

// Address returns the address of upstream i. Nobody listens there.
func Address(i int) string { return fmt.Sprintf("10.0.0.%d:9000", i) }

// Addresses returns the addresses of n upstreams.
func Addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = Address(i)
	}
	return all
}

// Report returns a report made now of this number of stalled low-priority joblets. 1000 overload an upstream.
func Report(stalled float64) pool.Report {
	return pool.Report{At: time.Now(), Stalled: [2]float64{stalled}, CoresBusy: -1, Completed: -1, Wait: math.NaN()}
}

// Hang makes an upstream suspect: its reports fail.
func Hang(b *balancer.Balancer, address string) {
	for range 2 {
		b.ReportFailed(address, health.ErrNoResponse)
	}
}

// RequireIdle requires that no job is in flight and none waits.
func RequireIdle(t testing.TB, b *balancer.Balancer) {
	t.Helper()
	inFlight, waiting := b.Counts()
	require.Equal(t, [2]int{}, [2]int{inFlight, waiting}, "jobs in flight, and waiting jobs")
}

// Records collects the records of ended jobs.
type Records struct {
	mu  sync.Mutex
	all []*record.Job
}

// Add is a sink of records.
func (r *Records) Add(j *record.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, j)
}

// All returns the records so far.
func (r *Records) All() []*record.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[:len(r.all):len(r.all)]
}

// Wait waits until n jobs have ended, and returns their records.
func (r *Records) Wait(t testing.TB, n int) []*record.Job {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.All()) >= n }, 2*time.Minute, time.Millisecond, "%d jobs should have ended", n)
	all := r.All()
	require.Len(t, all, n)
	return all
}
