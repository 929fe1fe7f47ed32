package balancer_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/balancing"
)

// prober is Hooks.Probe. Each probe takes some time, and finds full upstreams.
type prober struct {
	takes    time.Duration
	full     []string
	lost     bool
	projects []string
	timeout  time.Duration
	during   func() // called while probes run
}

func (p *prober) probe(ctx context.Context, addresses []string, project string, timeout time.Duration) []*pool.Hint {
	p.projects, p.timeout = append(p.projects, project), timeout
	if p.during != nil {
		p.during()
	}
	select {
	case <-time.After(min(p.takes, timeout)):
	case <-ctx.Done():
	}
	loads := make([]*pool.Hint, len(addresses))
	for i, address := range addresses {
		if ctx.Err() != nil || p.lost || p.takes > timeout {
			continue
		}
		loads[i] = &pool.Hint{At: time.Now(), Utilization: -1, CoresBusy: -1, Waited: -1, Fetched: -1}
		for _, full := range p.full {
			if address == full {
				loads[i].Running[0] = 100
			}
		}
	}
	return loads
}

// probing returns a balancer of two upstreams. Their jobs take 5 s, and by their reports the first one is
// cheaper.
func probing(t *testing.T, p *prober) *balancer.Balancer {
	b, _ := balancing.New(t, balancing.Setup{
		Pool: pool.Settings{Policy: selection.DefaultExpected(), Probe: true}, Overload: "none", Hooks: balancer.Hooks{Probe: p.probe},
	}, balancing.Addresses(2)...)
	for done := range 2 {
		time.Sleep(5 * time.Second)
		for i := range 2 {
			b.Report(address(i), pool.Report{
				At: time.Now(), Running: [2]float64{float64(10 * i), 0}, Cores: 4, CoresBusy: 4, Completed: float64(4 * done), Wait: math.NaN(),
			})
		}
	}
	time.Sleep(4 * time.Second)
	return b
}

// A claim waits for the probes without the lock, and then takes their loads into account.
func TestAClaimWaitsForProbes(t *testing.T) {
	for name, c := range map[string]struct {
		prober prober
		want   string
		waits  time.Duration
	}{
		"the reports were right":   {prober{takes: 3 * time.Millisecond}, address(0), 3 * time.Millisecond},
		"the first upstream fills": {prober{takes: 3 * time.Millisecond, full: []string{address(0)}}, address(1), 3 * time.Millisecond},
		"too late":                 {prober{takes: time.Second, full: []string{address(0)}}, address(0), 20 * time.Millisecond},
		"all are lost":             {prober{takes: 2 * time.Millisecond, lost: true}, address(0), 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := c.prober
				b := probing(t, &p)
				p.during = func() { b.Counts() } // takes the lock
				begun := time.Now()
				l := claimed(t, b, dispatch.Request{Project: 7, Name: "shop"})
				assert.Equal(t, c.want, l.Address)
				assert.Equal(t, c.waits, time.Since(begun))
				assert.Equal(t, c.waits, l.Claimed.Sub(begun))
				assert.Equal(t, 20*time.Millisecond, p.timeout)
				l.Done(time.Now(), pool.Answered)
				data := &intake.Parts{Set: true, Parts: []intake.Part{{Key: 7}, {Key: 8}}}
				l = claimed(t, b, dispatch.Request{Project: 7, Name: "shop", Data: data})
				assert.Equal(t, []string{"shop", ""}, p.projects, "of several pieces of data, none is named")
				l.Done(time.Now(), pool.Answered)
			})
		})
	}
}

// A submitter that disconnects during the probes is not counted as a failure of the upstreams: they are probed
// for the next jobs.
func TestAProbeOfAJobThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{takes: 10 * time.Millisecond}
		b := probing(t, p)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			l, err := claim(ctx, b, dispatch.Request{Project: 7})
			require.NoError(t, err)
			l.Done(time.Now(), pool.Gone)
			cancel()
		}
		assert.Len(t, p.projects, 5)
	})
}

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
			require.Equal(t, dispatch.Next{Again: true, Claimed: true}, l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Moved, Repeatable: true}))
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
			b, _ := balancing.New(t, balancing.Setup{Pool: pool.Settings{Withdraw: true}, Hooks: balancer.Hooks{
				Withdraw: func(address, id string) bool {
					asked <- [2]string{address, id}
					return c.accepts
				},
			}}, balancing.Addresses(2)...)
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
