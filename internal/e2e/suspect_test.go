package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/pkg/selection"
)

// hungFleet is a fleet in fake time. One upstream takes jobs and responds to nothing
// from an instant on.
type hungFleet struct {
	upstreams []pool.Upstream
	reporting bool // they have metrics
	from, to  time.Time

	mu   sync.Mutex
	last time.Time // the last job that went to it while it hung
	jobs int       // how many did
}

func (h *hungFleet) hangs(address string) bool {
	now := time.Now()
	return address == h.upstreams[0].Address && !now.Before(h.from) && now.Before(h.to)
}

// RoundTrip answers a request for metrics.
func (h *hungFleet) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.hangs(r.URL.Host) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status, body := http.StatusNotFound, ""
	if h.reporting && r.URL.Path == "/metrics" {
		status, body = http.StatusOK, "ruleserver_stalled_joblets 0\nruleserver_jobs_running 2\nruleserver_cores 8\n"
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// job goes where b says, and is answered after a while unless that upstream hangs.
func (h *hungFleet) job(t *testing.T, b *balancer.Balancer, project uint64, takes time.Duration) {
	lease, err := b.Claim(t.Context(), time.Now(), b.Begin(dispatch.Request{Project: project, Arrived: time.Now()}))
	if !assert.NoError(t, err) {
		return
	}
	time.Sleep(takes)
	if h.hangs(lease.Address) {
		h.mu.Lock()
		h.jobs++
		if lease.Claimed.After(h.last) {
			h.last = lease.Claimed
		}
		h.mu.Unlock()
		time.Sleep(time.Until(h.to))
	}
	lease.Answered(time.Now(), true, nil)
	lease.Done(time.Now(), pool.Answered)
}

// sidecar is a balancer with a poller, until the test ends.
func (h *hungFleet) sidecar(t *testing.T, ctx context.Context, wg *sync.WaitGroup, seed uint64) *balancer.Balancer {
	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	policy, err := selection.New("expected")
	require.NoError(t, err)
	detector, err := overload.New("none", 0)
	require.NoError(t, err)
	settings := report.Default()
	p, err := pool.New(pool.Config{
		Settings: pool.Settings{Policy: policy, Detector: detector, Interval: settings.Interval, Breaker: pool.DefaultBreaker()},
		Gate:     breaker.New, Rand: random(2),
	})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: random(3), Retry: dispatch.DefaultRetry(), Queue: dispatch.DefaultQueue()})
	require.NoError(t, err)
	var poller report.Source
	b := balancer.New(d, balancer.Hooks{Ask: func(address string) { poller.Ask(address) }})
	poller, err = report.New(report.Config{
		Settings: settings, Rand: random(4), Transport: h,
		Report: b.Report, Listing: b.Listing, Checked: b.Checked, Unreported: b.ReportFailed, Failed: func(string, error) {}, Silent: func(string, error) {},
	})
	require.NoError(t, err)
	b.Set(h.upstreams)
	var addresses []string
	for _, u := range h.upstreams {
		addresses = append(addresses, u.Address)
	}
	poller.Follow(addresses)
	wg.Go(func() { poller.Run(ctx) })
	wg.Go(func() { b.Run(ctx) })
	return b
}

// TestAHungUpstreamIsLeftAloneSoon: few jobs go to an upstream that hangs, and none
// after six seconds, whether or not it used to report. Nobody is suspect when it works again.
func TestAHungUpstreamIsLeftAloneSoon(t *testing.T) {
	for _, sidecars := range []int{1, 8} {
		for _, reporting := range []bool{true, false} {
			for _, upstreams := range []int{3, 14} {
				t.Run(fmt.Sprintf("%d sidecars, %d upstreams, reports %v", sidecars, upstreams, reporting), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { hang(t, sidecars, upstreams, reporting) })
				})
			}
		}
	}
}

func hang(t *testing.T, sidecars, upstreams int, reporting bool) {
	const rate = 100 // jobs a second
	h := &hungFleet{reporting: reporting, from: time.Now().Add(20 * time.Second)}
	h.to = h.from.Add(time.Minute)
	for i := range upstreams {
		h.upstreams = append(h.upstreams, pool.Upstream{Address: fmt.Sprintf("u%d:1", i), Cores: 8})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running, jobs sync.WaitGroup
	var all []*balancer.Balancer
	for i := range sidecars {
		all = append(all, h.sidecar(t, ctx, &running, uint64(i)))
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 100 * rate {
		takes := time.Duration(rng.ExpFloat64() * float64(250*time.Millisecond))
		project := 1 + rng.Uint64N(100)
		jobs.Go(func() { h.job(t, all[i%sidecars], project, takes) })
		time.Sleep(time.Second / rate)
	}
	jobs.Wait()
	for _, b := range all {
		for _, s := range b.States() {
			assert.Empty(t, s.Suspect)
			assert.Zero(t, s.InFlight)
		}
	}
	cancel()
	running.Wait()
	t.Logf("%d jobs went there while it hung, the last after %v", h.jobs, h.last.Sub(h.from))
	assert.NotZero(t, h.jobs)
	assert.Less(t, h.jobs, 60, "of 6,000")
	assert.LessOrEqual(t, h.last.Sub(h.from), 6*time.Second)
}
