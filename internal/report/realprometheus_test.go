//go:build cluster

package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/loopback"
)

// counting is a rule processing server that counts its scrapes. Scrape n reports n stalled
// joblets of low priority and 2 n running jobs.
type counting struct {
	*httptest.Server
	address string
	jobs    chan ruleserver.Record

	mu      sync.Mutex
	scrapes []time.Time // the start of each
}

func newCounting(t *testing.T) *counting {
	c := &counting{jobs: make(chan ruleserver.Record, 1)}
	rules, err := ruleserver.New(ruleserver.Config{
		Settings: ruleserver.Defaults(),
		Feeds:    example.Feeds(),
		OnJob:    func(r ruleserver.Record) { c.jobs <- r },
		AdjustLoad: func(l *executor.Load) {
			n := c.last()
			l.Stalled[executor.Low], l.Stalled[executor.High] = n, 1000
			l.Running[executor.Low], l.Running[executor.High] = 2*n, 0
		},
	})
	require.NoError(t, err)
	t.Cleanup(rules.Close)
	handler := rules.Handler()
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			c.mu.Lock()
			c.scrapes = append(c.scrapes, time.Now())
			c.mu.Unlock()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	c.address = c.Listener.Addr().String()
	return c
}

func (c *counting) last() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.scrapes)
}

func (c *counting) scrape(n int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scrapes[n-1]
}

// check asserts that a report has the age of the scrape whose number it shows.
func (c *counting) check(t *testing.T, r pool.Report) {
	t.Helper()
	n := r.Stalled[selection.Low]
	require.GreaterOrEqual(t, n, 1.0)
	assert.Equal(t, byPriority(n, 1000), r.Stalled)
	assert.Equal(t, byPriority(2*n, 0), r.Running)
	assert.Equal(t, 4, r.Cores)
	assert.True(t, r.Cached == nil)
	// The server receives a scrape shortly after Prometheus started it, and Prometheus can
	// shift its time by 2 ms. The time of the query is later.
	at := c.scrape(int(n))
	assert.False(t, r.At.After(at.Add(10*time.Millisecond)), "scrape %v began at %v, the report is of %v", n, at, r.At)
	assert.False(t, r.At.Before(at.Add(-10*time.Second)), "scrape %v began at %v, the report is of %v", n, at, r.At)
}

// word is one call of the source's functions.
type word struct {
	address string
	report  pool.Report
	cached  pool.CacheSet
	err     string
}

func TestRealPrometheus(t *testing.T) {
	a, b := newCounting(t), newCounting(t)
	url := startPrometheus(t, a.address, b.address)
	received := make(chan word)
	ended := make(chan struct{})
	send := func(x word) {
		select {
		case received <- x:
		case <-ended:
		}
	}
	c := testConfig()
	c.Prometheus, c.Interval, c.Timeout = url, 300*time.Millisecond, patience
	c.Report = func(address string, r pool.Report) { send(word{address: address, report: r}) }
	c.Listing = func(address string, _ time.Time, cached pool.CacheSet) { send(word{address: address, cached: cached}) }
	c.Failed = func(address string, _ bool, err error) { send(word{address: address, err: err.Error()}) }
	p := New(c)
	running(t, p)
	t.Cleanup(func() { close(ended) })
	p.Follow([]string{a.address, b.address, "127.0.0.1:1"})

	// Each scrape is reported once, in order, with its own time.
	reports := map[string][]pool.Report{}
	for len(reports[a.address]) < 5 || len(reports[b.address]) < 5 {
		switch x := within(t, received, "reports of both"); {
		case x.err != "" && strings.Contains(x.err, ": metrics: "):
			require.Equal(t, "upstream "+x.address+": metrics: from Prometheus: "+noMetrics, x.err)
			require.True(t, len(reports[x.address]) == 0 || everFailed(t, url, x.address), "only before its first scrape, or after one that failed")
		case x.err != "":
			require.Equal(t, "127.0.0.1:1", x.address)
		case x.cached != nil:
			assert.Zero(t, x.cached.Len())
		default:
			map[string]*counting{a.address: a, b.address: b}[x.address].check(t, x.report)
			if before := reports[x.address]; len(before) > 0 {
				last := before[len(before)-1]
				assert.Greater(t, x.report.Stalled[selection.Low], last.Stalled[selection.Low])
				assert.True(t, x.report.At.After(last.At))
				assert.True(t, math.IsNaN(x.report.Wait), "no job yet")
			}
			reports[x.address] = append(reports[x.address], x.report)
		}
	}

	// A job's times are the means of the next report, and its project is listed.
	resp, err := a.Client().Post(a.URL+"/v1/jobs", "application/json", strings.NewReader(example.Job()))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	facts := within(t, a.jobs, "the job's record").Facts
	for means, listed := false, false; !means || !listed; {
		switch x := within(t, received, "the job's times and project"); {
		case x.cached != nil:
			listed = listed || x.address == a.address && x.cached.Contains(intake.Key("12345"))
		case x.err == "" && !math.IsNaN(x.report.Wait):
			require.Equal(t, a.address, x.address)
			assert.InDelta(t, facts.Wait.Seconds(), x.report.Wait, 1e-9)
			assert.Equal(t, 1.0, x.report.Completed)
			means = true
		}
	}

	// An upstream that can no longer be scraped is removed at once; the other one stays.
	a.Close()
	gone := "upstream " + a.address + ": metrics: from Prometheus: " + noMetrics
	for within(t, received, "that a is gone").err != gone {
	}
	for {
		x := within(t, received, "a report of b")
		if x.address == b.address && x.err == "" && x.cached == nil {
			b.check(t, x.report)
			break
		}
		require.False(t, x.address == a.address && x.err == "" && x.cached == nil, "a report of one that is gone")
	}
}

// Metrics with labels and scales are requested in the same query as the others.
func TestRealPrometheusOfOtherServers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, vllmPage)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	c := testConfig()
	c.Prometheus, c.CachePath, c.Timeout = startPrometheus(t, address), none, patience
	c.Names = vllmNames()
	var reports []pool.Report
	c.Report = func(_ string, r pool.Report) { reports = append(reports, r) }
	p := New(c)
	t.Cleanup(p.prometheus.CloseIdleConnections)
	p.adjust(t.Context(), []string{address})
	require.Eventually(t, func() bool { p.pollPrometheus(t.Context(), false); return len(reports) > 0 }, patience, 100*time.Millisecond)
	assert.Equal(t, byPriority(7, 0), reports[0].Running)
	assert.Equal(t, byPriority(2, 0), reports[0].Stalled)
	assert.InDelta(t, 4, reports[0].CoresBusy, 1e-9)
	assert.Equal(t, total{5, 10}, p.all[address].before)
}

// The tests in files with this build tag run a real Prometheus, from Debian's package
// prometheus: make test-prometheus.

// startPrometheus runs a server that scrapes the targets every second, and
// returns its URL.
func startPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	require.NoError(t, err, "want Prometheus: apt-get install prometheus")

	var config strings.Builder
	config.WriteString("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: rules\n  static_configs:\n")
	fmt.Fprintf(&config, "  - targets: [%s]\n", strings.Join(targets, ", "))
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config.String()), 0o600))

	address, err := loopback.Reserve()
	require.NoError(t, err)
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if it has exited
		_ = cmd.Wait()         // it always fails after a kill
		if t.Failed() {
			t.Log(log.String())
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(t, func() bool {
		resp, err := client.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond, "Prometheus is ready")
	return "http://" + address
}

// everFailed asks Prometheus whether any scrape of a target has failed: on a busy machine a
// scrape can take longer than its timeout of a second.
func everFailed(t *testing.T, url, instance string) bool {
	t.Helper()
	response, err := http.PostForm(url+"/api/v1/query", neturl.Values{"query": {fmt.Sprintf("min_over_time(up{instance=%q}[1h])", instance)}})
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return strings.Contains(string(text), `,"0"]`)
}

// running runs a source until the test ends.
func running(t *testing.T, p *Source) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// within receives a value, or fails after patience.
func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(patience):
		assert.FailNow(t, "it did not come in time", what)
		panic("unreachable")
	}
}
