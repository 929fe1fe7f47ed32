package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/memnet"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig has the default settings, and hooks that do nothing.
func testConfig() Config {
	return Config{
		Settings: Default(),
		Rand:     rand.New(rand.NewPCG(1, 2)),
		Report:   func(string, pool.Report) {},
		Listing:  func(string, time.Time, pool.CacheSet) {},
		Failed:   func(string, error) {},
	}
}

// patience bounds what comes within seconds on real sockets: a busy machine may
// be slow.
const patience = 2 * time.Minute

var noon = time.Date(2025, 11, 20, 12, 0, 0, 0, time.UTC)

// goodPage is the metrics page of a busy upstream.
const goodPage = `# HELP ruleserver_stalled_joblets Joblets ready and waiting for a core.
# TYPE ruleserver_stalled_joblets gauge
ruleserver_stalled_joblets{priority="high"} 2
ruleserver_stalled_joblets{priority="low"} 7
# TYPE ruleserver_jobs_running gauge
ruleserver_jobs_running{priority="high"} 3
ruleserver_jobs_running{priority="low"} 12
# TYPE ruleserver_cores gauge
ruleserver_cores 16
# TYPE ruleserver_cores_busy gauge
ruleserver_cores_busy 15
# TYPE ruleserver_jobs_completed_total counter
ruleserver_jobs_completed_total{priority="high",outcome="ok"} 100
ruleserver_jobs_completed_total{priority="low",outcome="ok"} 1000
ruleserver_jobs_completed_total{priority="low",outcome="failed"} 10
# TYPE ruleserver_wait_seconds histogram
ruleserver_wait_seconds_bucket{priority="high",le="1"} 90
ruleserver_wait_seconds_bucket{priority="high",le="+Inf"} 100
ruleserver_wait_seconds_sum{priority="high"} 40
ruleserver_wait_seconds_count{priority="high"} 100
ruleserver_wait_seconds_bucket{priority="low",le="1"} 500
ruleserver_wait_seconds_bucket{priority="low",le="+Inf"} 1000
ruleserver_wait_seconds_sum{priority="low"} 2000
ruleserver_wait_seconds_count{priority="low"} 1000
# TYPE ruleserver_execution_seconds histogram
ruleserver_execution_seconds_bucket{priority="low",le="+Inf"} 1000
ruleserver_execution_seconds_sum{priority="low"} 9000
ruleserver_execution_seconds_count{priority="low"} 1000
# TYPE go_goroutines gauge
go_goroutines 42
`

// change returns goodPage with one line replaced; "" removes it.
func change(t *testing.T, line, by string) string {
	t.Helper()
	require.Contains(t, goodPage, line+"\n")
	if by != "" {
		by += "\n"
	}
	return strings.Replace(goodPage, line+"\n", by, 1)
}

func byPriority(low, high float64) (v [selection.Priorities]float64) {
	v[selection.Low], v[selection.High] = low, high
	return v
}

func listingOf(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"projects":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"version":3,"bytes":52428800,"age_seconds":%d.5}`, 100_000+i, n-i)
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func gzipped(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

// carrier is an http.RoundTripper as a func.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}
}

func well(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/metrics" {
		return respond(http.StatusOK, strings.NewReader(goodPage)), nil
	}
	return respond(http.StatusNotFound, strings.NewReader("")), nil
}

// after waits for d, or until the request is cancelled.
func after(r *http.Request, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// slow is a body that comes in chunks, with a pause before each.
type slow struct {
	r     *http.Request
	text  string
	chunk int
	pause time.Duration
}

func (s *slow) Read(into []byte) (int, error) {
	if err := after(s.r, s.pause); err != nil {
		return 0, err
	}
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(into, s.text[:min(s.chunk, len(s.text))])
	s.text = s.text[n:]
	return n, nil
}

// pages is a server of metrics and listing. A nil handler serves a good page, or no
// listing.
func pages(metrics, listing http.HandlerFunc) http.Handler {
	if metrics == nil {
		metrics = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, goodPage) }
	}
	if listing == nil {
		listing = http.NotFound
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /v1/cache/projects", listing)
	return mux
}

// upstream starts such a server, and returns its address.
func upstream(t *testing.T, metrics, listing http.HandlerFunc) string {
	server := httptest.NewServer(pages(metrics, listing))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// inMemory is such a server in a bubble, polled by hand. dials counts the connections.
func inMemory(t *testing.T, metrics, listing http.HandlerFunc, timeout time.Duration) (s *subject, dials *int) {
	const address = "rps:9001"
	var network memnet.Network
	web := &http.Server{Handler: pages(metrics, listing)}
	l := network.Listen(address)
	ended := make(chan error)
	go func() { ended <- web.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, web.Close())
		assert.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	dials = new(int)
	return newSubject(t, address, func(c *Config) {
		c.Timeout = timeout
		c.Dial = func(ctx context.Context, by, to string) (net.Conn, error) {
			*dials++
			return network.Dial(ctx, by, to)
		}
	}), dials
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.0.%d:9001", i+1)
	}
	return all
}
