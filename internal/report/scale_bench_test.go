package report

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// The benchmarks in this file measure what docs/scale.md computes with.
const (
	manyUpstreams = 200
	manyProjects  = 2000 // cached at each
)

// busyServer is a reference server with manyProjects in its cache, after some jobs.
func busyServer(b *testing.B) *httptest.Server {
	feeds := fstest.MapFS{}
	var projects []string
	for i := range manyProjects {
		project := fmt.Sprint(100_000 + 37*i)
		projects = append(projects, project)
		feeds[project+".csv"] = &fstest.MapFile{Data: []byte("id,title\n1,shirt\n"), ModTime: time.Now()}
	}
	feeds["12345.csv"] = &fstest.MapFile{Data: []byte(example.Feed()), ModTime: time.Now()}
	settings := ruleserver.Defaults()
	settings.Cores = 16
	rules, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: feeds, AdjustLoad: func(l *executor.Load) {
		for _, p := range executor.Priorities() {
			l.Stalled[p], l.Running[p], l.Busy = rand.IntN(100), rand.IntN(32), rand.IntN(16)
			for _, k := range executor.Kinds() {
				l.Totals.Started[p][k], l.Totals.Completed[p][k] = rand.Uint64N(1e6), rand.Uint64N(1e6)
			}
		}
	}})
	require.NoError(b, err)
	b.Cleanup(rules.Close)
	server := httptest.NewServer(rules.Handler())
	b.Cleanup(server.Close)
	for range 50 {
		resp, err := server.Client().Post(server.URL+"/v1/jobs", "application/json", strings.NewReader(example.Job()))
		require.NoError(b, err)
		require.NoError(b, resp.Body.Close())
		require.Equal(b, http.StatusOK, resp.StatusCode)
	}
	require.NoError(b, rules.Warm(projects...))
	return server
}

// countedConn is a connection that counts the bytes both ways.
type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// counter is a transport like the package's own, which also counts bytes.
func counter(b *testing.B) (*http.Transport, *atomic.Int64) {
	n := new(atomic.Int64)
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, n}, err
	}}
	b.Cleanup(transport.CloseIdleConnections)
	return transport, n
}

// BenchmarkTraffic measures the bytes on an upstream's connection, both ways and
// with HTTP's headers, for each kind of request.
func BenchmarkTraffic(b *testing.B) {
	server := busyServer(b)
	transport, n := counter(b)
	cfg := testConfig()
	cfg.Transport, cfg.Timeout = transport, patience
	p, err := NewPoller(cfg)
	require.NoError(b, err)
	address := server.Listener.Addr().String()
	u := newUpstreamPoller(p, address)
	list := func() error {
		return u.listing.update(context.Background(), u.client, upstreamURL(address, cfg.CachePath))
	}
	for _, c := range []struct {
		name string
		ask  func() error
	}{
		{"metrics", func() error { _, err := u.load(context.Background(), patience); return err }},
		{"listing=changed", func() error { u.listing.etag = ""; return list() }},
		{"listing=unchanged", list},
	} {
		b.Run(c.name, func(b *testing.B) {
			require.NoError(b, list()) // an etag, and a connection
			n.Store(0)
			for b.Loop() {
				require.NoError(b, c.ask())
			}
			require.Equal(b, manyProjects, u.listing.cached.Len())
			b.ReportMetric(float64(n.Load())/float64(b.N), "wire-B/op")
		})
	}
}

// BenchmarkMemory measures what reports and pool hold on the heap for
// manyUpstreams, without connections.
func BenchmarkMemory(b *testing.B) {
	listing := listingOf(manyProjects)
	carrier := carrier(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/metrics" {
			return respond(http.StatusOK, strings.NewReader(goodPage)), nil
		}
		return respond(http.StatusOK, bytes.NewReader(listing)), nil
	})
	policy, err := selection.New("expected")
	require.NoError(b, err)
	detector, err := overload.New("threshold", 100)
	require.NoError(b, err)
	held := 0.0
	for b.Loop() {
		reported := make(map[string]bool, manyUpstreams)
		before := heap()
		breakers, err := breaker.New(breaker.Config{Settings: breaker.Default(), Rand: rand.New(rand.NewPCG(1, 3))})
		require.NoError(b, err)
		upstreams, err := pool.New(pool.Config{
			Settings: pool.Settings{Policy: policy, Detector: detector, Interval: 5 * time.Second},
			Breakers: breakers, Rand: rand.New(rand.NewPCG(1, 2)),
		})
		require.NoError(b, err)
		var set []pool.Upstream
		for _, address := range addresses(manyUpstreams) {
			set = append(set, pool.Upstream{Address: address})
		}
		upstreams.Set(time.Now(), set)

		var mu sync.Mutex
		all, done := make(chan struct{}), false
		cfg := testConfig()
		cfg.Transport, cfg.Interval, cfg.Timeout = carrier, 10*time.Second, patience
		cfg.Report = func(address string, r pool.Report) {
			mu.Lock()
			defer mu.Unlock()
			upstreams.Report(time.Now(), address, r)
			if reported[address] = true; len(reported) == manyUpstreams && !done {
				done = true
				close(all)
			}
		}
		cfg.Failed = func(_ string, err error) { b.Error(err) }
		p, err := NewPoller(cfg)
		require.NoError(b, err)
		p.Follow(addresses(manyUpstreams))
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		<-all
		held += heap() - before
		cancel()
		running.Wait()
		for _, state := range upstreams.States(time.Now()) {
			require.Equal(b, manyProjects, state.Cached)
		}
	}
	b.ReportMetric(held/float64(b.N)/1e6, "held-MB")
}

// open is a breaker that never opens.
// heap returns the bytes in use on heap and stacks.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
