package report

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig returns the default settings with hooks that do nothing.
func testConfig() Config {
	return Config{
		Settings: Default(),
		Rand:     rand.New(rand.NewPCG(1, 2)),
		Dial:     new(net.Dialer).DialContext,
		Report:   func(string, pool.Report) {},
		Listing:  func(string, time.Time, pool.CacheSet) {},
		Failed:   func(string, bool, error) {}, Unreported: func(string, error) {}, Checked: func(string, error) {},
		IsShortage: func(error) bool { return false },
	}
}

// patience is a generous timeout for events on real sockets, because the machine can be busy.
const patience = 2 * time.Minute

var noon = time.Date(2025, 11, 20, 12, 0, 0, 0, time.UTC)

// The metrics pages of a busy upstream, and of a vLLM server with two models.
var (
	//go:embed testdata/page.txt
	goodPage string
	//go:embed testdata/vllm.txt
	vllmPage string
)

// goodListing is a listing with the project 7.
const goodListing = `{"projects":[{"id":7}]}`

// change returns goodPage with one line replaced, or removed if by is "".
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

func gzipped(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

// carrier is an http.RoundTripper made of a function.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func respond(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}
}

func well(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/metrics" {
		return respond(http.StatusOK, strings.NewReader(goodPage)), nil
	}
	return respond(http.StatusOK, strings.NewReader(goodListing)), nil
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

// slow is a body that arrives in chunks, with a pause before each.
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

// upstream starts a server with metrics and a cache listing, and returns its address. A nil
// handler serves goodPage, or no listing.
func upstream(t *testing.T, metrics, listing http.HandlerFunc) string {
	server := httptest.NewServer(pages(metrics, listing))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func pages(metrics, listing http.HandlerFunc) http.Handler {
	if metrics == nil {
		metrics = say(goodPage)
	}
	if listing == nil {
		listing = http.NotFound
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /v1/cache/projects", listing)
	return mux
}

func say(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.0.%d:9001", i+1)
	}
	return all
}

// subject is one upstream that the test polls itself.
type subject struct {
	*upstreamPoller
	cached  pool.CacheSet
	reports []pool.Report // with the listings that were received
	errs    []error
}

func newSubject(t *testing.T, address string, changes ...func(*Config)) *subject {
	s := &subject{}
	c := testConfig()
	c.Timeout = patience
	for _, change := range changes {
		change(&c)
	}
	c.Listing = func(_ string, _ time.Time, cached pool.CacheSet) { s.cached = cached }
	c.Report = func(_ string, r pool.Report) {
		r.Cached = s.cached
		s.reports = append(s.reports, r)
	}
	c.Failed = func(at string, _ bool, err error) {
		assert.Equal(t, address, at)
		s.errs = append(s.errs, err)
	}
	p := New(c)
	t.Cleanup(p.client.CloseIdleConnections)
	s.upstreamPoller = p.upstream(address)
	return s
}

// once polls, and returns the report, if any, and the failure.
func (s *subject) once(t *testing.T) (*pool.Report, error) {
	s.cached, s.reports, s.errs = nil, nil, nil
	s.poll(t.Context(), false)
	require.LessOrEqual(t, len(s.reports), 1)
	require.LessOrEqual(t, len(s.errs), 1)
	require.NotZero(t, len(s.reports)+len(s.errs), "a poll that ended silently")
	var r *pool.Report
	if len(s.reports) == 1 {
		r = &s.reports[0]
	}
	return r, errors.Join(s.errs...)
}

// fleet replaces all upstreams of a Source, and prometheus:9090. It records the requests with
// their times, and the results. It requires fake time.
type fleet struct {
	*Source
	answer func(r *http.Request) (*http.Response, error) // nil: responds at once as well does

	mu       sync.Mutex
	begun    time.Time
	followed []string
	asked    map[string][]time.Duration // times since begun, by host; by host and path if the path is not /metrics
	asking   map[string]int
	reports  map[string][]pool.Report
	listings map[string][]time.Time
	failed   map[string][]string // texts of the errors
	silent   map[string][]string
}

func newFleet(t *testing.T, changes ...func(*Config)) *fleet {
	f := &fleet{
		begun: time.Now(), asked: map[string][]time.Duration{}, asking: map[string]int{}, reports: map[string][]pool.Report{},
		listings: map[string][]time.Time{}, failed: map[string][]string{}, silent: map[string][]string{},
	}
	c := testConfig()
	c.Report = func(address string, r pool.Report) {
		f.locked(func() { f.reports[address] = append(f.reports[address], r) })
	}
	c.Listing = func(address string, at time.Time, cached pool.CacheSet) {
		assert.True(t, cached.Contains(intake.Key("7")))
		f.locked(func() { f.listings[address] = append(f.listings[address], at) })
	}
	c.Failed = func(address string, never bool, err error) {
		errs := f.failed
		if never {
			errs = f.silent
		}
		f.locked(func() { errs[address] = append(errs[address], err.Error()) })
	}
	for _, change := range changes {
		change(&c)
	}
	f.Source = New(c)
	f.client.Transport, f.prometheus.Transport = carrier(f.roundTrip), carrier(f.roundTrip)
	return f
}

func (f *fleet) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fleet) Follow(set []string) {
	f.locked(func() { f.followed = set })
	f.Source.Follow(set)
}

func (f *fleet) roundTrip(r *http.Request) (*http.Response, error) {
	what := strings.TrimSuffix(r.URL.Host+r.URL.Path, "/metrics")
	f.locked(func() {
		if f.asking[r.URL.Host]++; f.asking[r.URL.Host] > 1 {
			panic("two polls of one upstream at once")
		}
		f.asked[what] = append(f.asked[what], time.Since(f.begun))
	})
	defer f.locked(func() { f.asking[r.URL.Host]-- })
	if f.answer != nil {
		return f.answer(r)
	}
	return f.well(r)
}

// well responds like a healthy upstream, or like a Prometheus that scraped everything a second
// ago.
func (f *fleet) well(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "prometheus:9090" {
		return well(r)
	}
	var all []string
	now := looked + time.Since(f.begun).Seconds()
	f.locked(func() {
		for _, address := range f.followed {
			all = append(all, scraped(address, 1, map[string]string{"pilotfish=scraped": fmt.Sprintf("%.3f", now-1)}))
		}
	})
	text := strings.ReplaceAll(vectorOf(all...), fmt.Sprintf("%f", looked), fmt.Sprintf("%f", now))
	return respond(http.StatusOK, strings.NewReader(text)), nil
}

// during runs the source while act runs.
func (f *fleet) during(t *testing.T, act func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	act()
	cancel()
	<-done
}

// follow runs the source for a time with these upstreams.
func (f *fleet) follow(t *testing.T, howLong time.Duration, addresses []string) {
	f.during(t, func() {
		f.Follow(addresses)
		time.Sleep(howLong)
	})
}

// polls returns the number of polls of each upstream since the last call.
func (f *fleet) polls() map[string]int {
	synctest.Wait()
	counts := map[string]int{}
	f.locked(func() {
		for what, asked := range f.asked {
			if !strings.Contains(what, "/") {
				counts[what] = len(asked)
			}
		}
		clear(f.asked)
	})
	return counts
}
