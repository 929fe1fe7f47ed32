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
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/balancing"
)

// patience bounds every wait of these tests; nothing is measured by it.
const patience = 2 * time.Minute

// setup is what a test varies.
type setup struct {
	proxy.Config
	upstreams []string
	policy    selection.Policy       // nil takes the upstreams in the order given
	overload  string                 // the policy of overload detection; "" is none
	budget    int64                  // of kept bodies; 0 is 256 MiB
	queue     dispatch.QueueSettings // zero is the default
	wait      time.Duration          // in the queue; 0 is the default
	retries   float64                // the retry budget; 0 lets all be retried
	on        []int                  // retry.on
	failures  int                    // that open a breaker; 0 is practically never
	withdraw  func(address, id string) bool
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

	records balancing.Records
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
	s.queue = cmp.Or(s.queue, dispatch.DefaultQueue())
	s.queue.Wait = cmp.Or(s.wait, s.queue.Wait)
	retry := dispatch.DefaultRetry()
	if s.network == nil {
		retry.ConnectTimeout = patience // an upstream that a busy machine holds up refuses nothing
	}
	retry.Budget, retry.On = cmp.Or(s.retries, 1), s.on
	b, _ := balancing.New(t, balancing.Setup{
		Pool: pool.Settings{Policy: s.policy, Withdraw: s.withdraw != nil}, Hooks: balancer.Hooks{Withdraw: s.withdraw}, Overload: cmp.Or(s.overload, "none"), Failures: cmp.Or(s.failures, balancing.NoBreaker),
		Retry: retry, Queue: s.queue,
	}, s.upstreams...)
	c := &sidecar{t: t, balancer: b, budget: intake.NewBudget(cmp.Or(s.budget, 256<<20), 16<<20)}

	s.Budget = c.budget
	var err error
	if s.Reader == nil {
		s.Reader, err = intake.NewReader(intake.Default())
		require.NoError(t, err)
	}
	if s.Hint == nil {
		s.Hint = report.Default().Hint
	}
	s.Claimer, s.MaxBody = b, cmp.Or(s.MaxBody, int64(intake.Default().MaxBody))
	s.Sinks = []func(*record.Job){c.records.Add}
	if s.Dial == nil {
		if s.Dial = proxy.DialUpstream; s.network != nil {
			s.Dial = s.network.Dial
		}
	}
	lookups := new(proxy.Lookups)
	s.Dial, s.IsShortage = lookups.Over(s.Dial), lookups.IsShortage
	if s.Draining == nil {
		s.Draining = func() bool { return false }
	}
	s.Idle = cmp.Or(s.Idle, proxy.Default().Idle)
	handler, err := proxy.New(s.Config)
	require.NoError(t, err)
	c.handler = handler
	s.server.Conns = cmp.Or(s.server.Conns, proxy.DefaultServer().Connections)
	s.server.Budget, s.server.ErrorLog = c.budget, log.New(io.Discard, "", 0)
	c.server = proxy.NewServer(handler, s.server)

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
		balancing.RequireIdle(t, b)
		require.Zero(t, c.budget.Used(), "bytes of bodies that are still kept")
	})
	return c
}

func (c *sidecar) url(path string) string { return "http://" + c.address + path }

// seen waits until n jobs have ended and returns their records.
func (c *sidecar) seen(n int) []*record.Job {
	c.t.Helper()
	return c.records.Wait(c.t, n)
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

// post submits a job with some header fields, and reads the whole response.
func (c *sidecar) post(body string, header ...string) (reply, string) {
	c.t.Helper()
	return c.send(client(c.t), reader(body), append(header, "Content-Type", "application/json")...)
}

// send posts a body with some header fields. A body of an unknown type is sent in chunks.
func (c *sidecar) send(by *http.Client, body io.Reader, header ...string) (reply, string) {
	c.t.Helper()
	r, err := http.NewRequest(http.MethodPost, c.url("/v1/jobs"), body)
	require.NoError(c.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := by.Do(r)
	require.NoError(c.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return reply{res.StatusCode, res.Header}, string(text)
}

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the transport comments on upstreams that misbehave
	goleak.VerifyTestMain(m)
}
