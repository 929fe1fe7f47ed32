//go:build cluster

package report

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// BenchmarkRealPrometheus measures one query about manyUpstreams: the bytes on the
// connection both ways, and the server's processor time without its scrapes.
func BenchmarkRealPrometheus(b *testing.B) {
	server := busyServer(b)
	var targets []target
	for _, address := range addresses(manyUpstreams) {
		targets = append(targets, target{server.Listener.Addr().String(), "instance: \"" + address + "\""})
	}
	transport, n := counter(b)
	url := startPrometheus(b, targets...)
	known := map[string]bool{}
	c := testConfig()
	c.Source, c.Prometheus = FromPrometheus, &Server{URL: url, InstanceLabel: "instance"}
	c.Transport, c.Timeout = transport, patience
	c.Report = func(address string, _ pool.Report) { known[address] = true }
	p, err := NewPrometheus(c)
	require.NoError(b, err)
	p.Follow(addresses(manyUpstreams))
	require.Eventually(b, func() bool { p.poll(context.Background(), false); return len(known) == manyUpstreams }, patience, time.Second)

	start, used := time.Now(), processor(b, url)
	time.Sleep(10 * time.Second) // scrapes alone
	scrapes := (processor(b, url) - used) / time.Since(start).Seconds()

	start, used = time.Now(), processor(b, url)
	n.Store(0)
	for b.Loop() {
		p.poll(context.Background(), false)
	}
	queries := processor(b, url) - used - scrapes*time.Since(start).Seconds()
	b.ReportMetric(queries*1000/float64(b.N), "server-ms/op")
	b.ReportMetric(float64(n.Load())/float64(b.N), "wire-B/op")
}

// processor is the processor time, in seconds, that the server says it has used.
func processor(b *testing.B, url string) float64 {
	resp, err := http.Get(url + "/metrics")
	require.NoError(b, err)
	defer resp.Body.Close()
	page, err := readPage(resp.Header, resp.Body, 50_000)
	require.NoError(b, err)
	return sum(page, metric{name: "process_cpu_seconds_total", scale: 1})
}
