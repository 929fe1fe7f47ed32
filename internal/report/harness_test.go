package report

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
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

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	if metrics == nil {
		metrics = say(goodPage)
	}
	if listing == nil {
		listing = http.NotFound
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /v1/cache/projects", listing)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
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

// recorded is a Source with default settings that records what its hooks receive, by upstream.
type recorded struct {
	*Source
	results
	mu sync.Mutex
}

type results struct {
	reports        map[string][]pool.Report
	listings       map[string][]received
	failed, silent map[string][]string // texts of the errors; silent: of an upstream that never reported
	unreported     map[string]int
	checked        map[string][]error
}

// received is a cache listing, and the time of its request.
type received struct {
	at     time.Time
	cached pool.CacheSet
}

func newRecorded(t *testing.T, changes ...func(*Config)) *recorded {
	r := &recorded{}
	r.clear()
	c := Config{
		Settings: Default(),
		Rand:     rand.New(rand.NewPCG(1, 2)),
		Dial:     new(net.Dialer).DialContext,
		Report: func(address string, report pool.Report) {
			r.locked(func() { r.reports[address] = append(r.reports[address], report) })
		},
		Listing: func(address string, at time.Time, cached pool.CacheSet) {
			r.locked(func() { r.listings[address] = append(r.listings[address], received{at, cached}) })
		},
		Failed: func(address string, never bool, err error) {
			errs := r.failed
			if never {
				errs = r.silent
			}
			r.locked(func() { errs[address] = append(errs[address], err.Error()) })
		},
		IsShortage: func(error) bool { return false },
		Unreported: func(address string, _ error) { r.locked(func() { r.unreported[address]++ }) },
		Checked: func(address string, why error) {
			r.locked(func() { r.checked[address] = append(r.checked[address], why) })
		},
	}
	for _, change := range changes {
		change(&c)
	}
	r.Source = New(c)
	t.Cleanup(r.client.CloseIdleConnections)
	t.Cleanup(r.prometheus.CloseIdleConnections)
	return r
}

func (r *recorded) clear() {
	r.results = results{
		map[string][]pool.Report{}, map[string][]received{}, map[string][]string{}, map[string][]string{}, map[string]int{}, map[string][]error{},
	}
}

func (r *recorded) locked(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// once keeps the results of one poll.
func (r *recorded) once(t *testing.T, poll func(ctx context.Context, check bool) pace) {
	r.clear()
	poll(t.Context(), false)
}

// patiently is for polls on real sockets.
func patiently(c *Config) { c.Timeout = patience }

// fleet replaces all upstreams of a Source, and prometheus:9090. It records the requests with
// their times. It requires fake time.
type fleet struct {
	*recorded
	answer func(r *http.Request) (*http.Response, error) // nil: responds at once as well does

	begun    time.Time
	followed []string
	asked    map[string][]time.Duration // times since begun, by host; by host and path if the path is not /metrics
	asking   map[string]int
}

func newFleet(t *testing.T, changes ...func(*Config)) *fleet {
	f := &fleet{recorded: newRecorded(t, changes...), begun: time.Now(), asked: map[string][]time.Duration{}, asking: map[string]int{}}
	f.client.Transport, f.prometheus.Transport = carrier(f.roundTrip), carrier(f.roundTrip)
	return f
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
