package balancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
)

// A draining upstream gets a request to withdraw a waiting job. Another upstream is claimed for the job until the
// first refuses, or until a second after it accepted: enough for the response to the job.
func TestAnUpstreamIsAskedToWithdrawAJob(t *testing.T) {
	for name, c := range map[string]struct {
		accepts bool
		end     func(b *balancer.Balancer, j *dispatch.Job, l *balancer.Lease) // shortly after the request
		counts  []int                                                          // jobs at upstreams after half a second, and after two
	}{
		"it refuses":  {false, nil, []int{1, 1}},
		"it does not": {true, nil, []int{2, 1}},
		"it does": {true, func(b *balancer.Balancer, j *dispatch.Job, l *balancer.Lease) {
			require.Equal(t, dispatch.Next{Again: true}, l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Moved, Repeatable: true}))
			next, err := b.Claim(t.Context(), time.Now(), j)
			require.NoError(t, err)
			assert.Equal(t, address(1), next.Address)
			assert.NotEqual(t, l.ID(), next.ID())
		}, []int{1, 1}},
		"a response begins":  {true, func(_ *balancer.Balancer, _ *dispatch.Job, l *balancer.Lease) { l.Answered(time.Now(), true, nil) }, []int{1, 1}},
		"the submitter ends": {true, func(_ *balancer.Balancer, _ *dispatch.Job, l *balancer.Lease) { l.Done(time.Now(), pool.Gone) }, []int{0, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan [2]string, 1)
			s := pool.Settings{Interval: 5 * time.Second, Breaker: health.Default(), Withdraw: true}
			b := over(t, 2, "least-in-flight", "threshold", s, dispatch.DefaultQueue(), balancer.Hooks{
				Withdraw: func(address, id string) bool {
					asked <- [2]string{address, id}
					return c.accepts
				},
			})
			load(b, 0, 0)
			load(b, 1, 1000)
			j := b.Begin(dispatch.Request{Arrived: time.Now(), Withdraw: make(withdrawal, 1)})
			l, err := b.Claim(t.Context(), time.Now(), j)
			require.NoError(t, err)
			time.Sleep(time.Second)
			b.Drain(address(0), true)
			load(b, 1, 0)
			time.Sleep(100 * time.Millisecond)
			load(b, 0, 3)
			assert.Equal(t, [2]string{address(0), l.ID()}, <-asked, name)
			if c.end != nil {
				c.end(b, j, l)
			}
			for i, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} {
				time.Sleep(after)
				synctest.Wait()
				inFlight, _ := b.Counts()
				assert.Equal(t, c.counts[i], inFlight, "%s, %d", name, i)
			}
		})
	}
}
