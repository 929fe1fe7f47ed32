package proxy_test

import (
	"cmp"
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/pkg/selection"
)

// patience bounds every wait of these tests; nothing is measured by it.
const patience = 20 * time.Second

// setup is what a test varies.
type setup struct {
	proxy.Config
	upstreams []string
	seed      uint64                   // of what the sidecar draws
	policy    selection.Policy         // nil takes the upstreams in the order given
	detector  func() overload.Detector // nil: no upstream is ever overloaded
	budget    int64                    // of kept bodies; 0 is 256 MiB
	queue     dispatch.QueueSettings   // zero is the default
	wait      time.Duration            // in the queue; 0 is the default
	projects  dispatch.ProjectSettings
	retries   float64 // the retry budget; 0 lets all be retried
	on        []int   // retry.on
	failures  int     // that open a breaker; 0 is practically never
	server    proxy.ServerConfig
	network   *memory // nil is TCP
}

// sidecar is a proxy with all that stands behind it, listening.
type sidecar struct {
	t        testing.TB
	address  string
	handler  *proxy.Proxy
	balancer *balancer.Balancer
	server   *proxy.Server
	budget   *intake.Budget

	mu      sync.Mutex
	records []*record.Job
}

// inOrder picks the first of its upstreams that is eligible.
type inOrder map[uint64]int

func (o inOrder) Pick(_ selection.Job, views []selection.View, _ *rand.Rand) int {
	best := 0
	for i := range views {
		if o[views[i].ID] < o[views[best].ID] {
			best = i
		}
	}
	return best
}

func startSidecar(t testing.TB, s setup) *sidecar {
	t.Helper()
	if s.policy == nil {
		o := inOrder{}
		for i, u := range s.upstreams {
			o[selection.UpstreamID(u)] = i
		}
		s.policy = o
	}
	if s.detector == nil {
		s.detector = func() overload.Detector { return func(overload.Sample) overload.Level { return 1 } }
	}
	if s.queue == (dispatch.QueueSettings{}) {
		s.queue = dispatch.DefaultQueue()
	}
	s.queue.Wait = cmp.Or(s.wait, s.queue.Wait)
	retry := dispatch.DefaultRetry()
	if s.network == nil {
		retry.ConnectTimeout = patience // an upstream that a busy machine holds up refuses nothing
	}
	retry.Budget, retry.On = cmp.Or(s.retries, 1), s.on
	if s.budget == 0 {
		s.budget = 256 << 20
	}
	rng := rand.New(rand.NewPCG(s.seed, 2))
	guarded := health.Default()
	guarded.Failures = cmp.Or(s.failures, 1e6)
	p, err := pool.New(pool.Config{
		Settings: pool.Settings{
			Policy: s.policy, Detector: s.detector, Interval: 5 * time.Second, Breaker: guarded,
		},
		Gate: breaker.New, Rand: rng,
	})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: rng, Retry: retry, Queue: s.queue, Projects: s.projects})
	require.NoError(t, err)
	c := &sidecar{t: t, budget: intake.NewBudget(s.budget, 16<<20)}
	b := balancer.New(d, balancer.Hooks{})
	c.balancer = b
	set := make([]pool.Upstream, len(s.upstreams))
	for i, u := range s.upstreams {
		set[i].Address = u
	}
	b.Set(set)

	s.Budget = c.budget
	if s.Reader == nil {
		s.Reader, err = intake.NewReader(intake.Default())
		require.NoError(t, err)
	}
	if s.Hint == nil {
		s.Hint = report.Default().Hint
	}
	s.Claimer, s.MaxBody = b, cmp.Or(s.MaxBody, int64(intake.Default().MaxBody))
	s.Sinks = []func(*record.Job){func(r *record.Job) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.records = append(c.records, r)
	}}
	if s.network != nil && s.Dial == nil {
		s.Dial = s.network.Dial
	}
	s.Idle = cmp.Or(s.Idle, proxy.Default().Idle)
	handler, err := proxy.New(s.Config)
	require.NoError(t, err)
	c.handler = handler
	s.server.Conns = cmp.Or(s.server.Conns, proxy.DefaultServer().Connections)
	s.server.Budget, s.server.ErrorLog = c.budget, log.New(io.Discard, "", 0)
	c.server, err = proxy.NewServer(handler, s.server)
	require.NoError(t, err)

	var l net.Listener
	if s.network != nil {
		l = s.network.Listen("127.0.0.1:8080")
	} else {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	c.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	running.Go(func() {
		if err := c.server.Serve(l); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.server.Shutdown(now) // tests that care for this error shut down themselves
		stop()
		running.Wait()
		handler.Close()
		inFlight, waiting := b.Counts()
		if inFlight != 0 || waiting != 0 {
			t.Errorf("%d leases and %d waiting jobs are left", inFlight, waiting)
		}
		if used := c.budget.Used(); used != 0 {
			t.Errorf("%d bytes of bodies are still kept", used)
		}
	})
	return c
}

func (c *sidecar) url(path string) string { return "http://" + c.address + path }

// seen waits until n jobs have ended and returns their records.
func (c *sidecar) seen(n int) []*record.Job {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.records) >= n
	}, patience, time.Millisecond, "%d jobs should have ended", n)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(c.t, c.records, n)
	return c.records
}

// client is a submitter's, with connections of its own.
func client(t testing.TB) *http.Client {
	// Its connections are idle for less than a read may take, which would end one that was just taken for a job.
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100, DialContext: dial, IdleConnTimeout: patience / 2}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// reply is the head of a response.
type reply struct {
	StatusCode int
	Header     http.Header
}

// post submits a job and reads the whole response.
func (c *sidecar) post(body string) (reply, string) {
	c.t.Helper()
	return c.postAs("application/json", body, true)
}

// postAs posts a body of a type, with its length or in chunks.
func (c *sidecar) postAs(contentType, body string, sized bool) (reply, string) {
	c.t.Helper()
	r := reader(body)
	if !sized {
		r = unsized{r}
	}
	res, err := client(c.t).Post(c.url("/v1/jobs"), contentType, r)
	require.NoError(c.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return reply{res.StatusCode, res.Header}, string(text)
}
