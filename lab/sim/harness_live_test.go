package sim_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/test/memnet"
)

// address returns the address of an upstream by its number, as in the simulator: the place of a
// project depends on it.
func address(number int) string { return fmt.Sprintf("rps-%02d:80", number) }

// cluster is real sidecars and reference servers on a network in memory. It runs in fake time,
// which advances only when all goroutines are blocked, so the machine's load does not matter.
type cluster struct {
	network memnet.Network
	seed    uint64
	quiet   *log.Logger
	targets []string

	ctx     context.Context
	cancel  func()
	running sync.WaitGroup
	closers []func()
}

// startCluster starts servers that have a feed for every project of the jobs, and sidecars.
func startCluster(t *testing.T, jobs []trace.Job, policy string, seed uint64) *cluster {
	t.Helper()
	c := &cluster{seed: seed, quiet: log.New(io.Discard, "", 0)}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	feeds := fstest.MapFS{}
	for _, j := range jobs {
		feeds[string(j.Project)+".csv"] = &fstest.MapFile{Data: []byte("id\n1\n")}
	}
	for number := range upstreams {
		c.serve(t, address(number), feeds)
	}
	for number := range sidecars {
		c.sidecar(t, number, policy)
	}
	return c
}

// serve starts a reference server with virtual cores, which uses the costs in the jobs.
func (c *cluster) serve(t *testing.T, address string, feeds fstest.MapFS) {
	t.Helper()
	s := ruleserver.Defaults()
	s.Cores, s.TrustCost, s.CacheBytes = cores, true, 64<<30
	server, err := ruleserver.New(ruleserver.Config{Settings: s, Feeds: feeds})
	require.NoError(t, err)
	web := &http.Server{Handler: server.Handler(), ErrorLog: c.quiet}
	listener := c.network.Listen(address)
	c.running.Go(func() { _ = web.Serve(listener) })
	c.closers = append(c.closers, func() { _ = web.Close(); server.Close() })
}

// sidecar starts the parts of a pilotfish, with separate random sources.
func (c *cluster) sidecar(t *testing.T, number int, policy string) {
	t.Helper()
	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, 10*uint64(number)+stream)) }
	chosen, err := rivals.New(policy)
	require.NoError(t, err)
	detector, err := overload.Settings{Policy: "none", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	p, err := pool.New(pool.Config{
		Settings: pool.Settings{Policy: chosen, Detector: detector, Interval: interval, Breaker: health.Default()},
		Gate:     breaker.New, Rand: random(1),
	})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: random(2), Retry: dispatch.DefaultRetry(), Queue: dispatch.DefaultQueue()})
	require.NoError(t, err)
	b := balancer.New(d, balancer.Hooks{})

	reader, err := intake.NewReader(intake.Default())
	require.NoError(t, err)
	handler, err := proxy.New(proxy.Config{
		Config: job.Config{
			Reader: reader, Budget: intake.NewBudget(256<<20, 16<<20), MaxBody: 1 << 20, Claimer: b, Hint: report.Default().Hint, ExplainHeaders: true,
		},
		Dial: c.network.Dial, IsShortage: new(proxy.Lookups).IsShortage, Idle: proxy.Default().Idle, Draining: func() bool { return false },
	})
	require.NoError(t, err)
	server := proxy.NewServer(handler, proxy.ServerConfig{Conns: 1000, Budget: intake.NewBudget(1<<20, 0), ErrorLog: c.quiet})

	settings := report.Default()
	settings.Interval = interval
	reports := report.New(report.Config{
		Settings: settings, Rand: random(3), Report: b.Report, Listing: b.Listing, Checked: b.Checked, Unreported: b.ReportFailed,
		Failed: func(address string, _ bool, err error) { t.Errorf("report of %s: %v", address, err) },
		Dial:   c.network.Dial, IsShortage: new(proxy.Lookups).IsShortage,
	})
	var set []pool.Upstream
	var follow []string
	for number := range upstreams {
		set = append(set, pool.Upstream{Address: address(number)})
		follow = append(follow, address(number))
	}
	b.Set(set)
	reports.Follow(follow)

	own := fmt.Sprintf("127.0.0.1:%d", 8080+number)
	listener := c.network.Listen(own)
	c.running.Go(func() { b.Run(c.ctx) })
	c.running.Go(func() { reports.Run(c.ctx) })
	c.running.Go(func() { _ = server.Serve(listener) })
	c.closers = append(c.closers, func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(now)
		handler.Close()
	})
	c.targets = append(c.targets, "http://"+own)
}

// replay sends the jobs, and returns the result of each.
func (c *cluster) replay(t *testing.T, jobs []trace.Job) map[trace.Line]seen {
	t.Helper()
	results := map[trace.Line]seen{}
	transport := &http.Transport{DialContext: c.network.Dial, DisableCompression: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	ended, err := replay.Run(c.ctx, replay.Config{Jobs: jobs, Targets: c.targets, Transport: transport})
	require.NoError(t, err)
	for _, r := range ended {
		if !assert.True(t, r.OK(), "line %d: status %d, %v", r.Line, r.Status, r.Err) {
			continue
		}
		hint, _ := report.Default().Hint(r.Header, time.Time{})
		wait := r.Late + hint.Waited.Seconds()
		results[r.Line] = seen{r.Header.Get("Pilotfish-Upstream"), wait, r.LastByte - wait, hint.Fetched > 0}
	}
	return results
}

// stop stops everything, the sidecars before the servers.
func (c *cluster) stop() {
	c.cancel()
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
	c.running.Wait()
}
