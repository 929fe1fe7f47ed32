//go:build cluster

package report

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
)

// counting is a rule processing server that counts its scrapes. Scrape n shows n
// stalled joblets of low priority and 2 n running jobs.
type counting struct {
	*httptest.Server
	address string
	jobs    chan ruleserver.Record

	mu      sync.Mutex
	scrapes []time.Time // when each began
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
	// The server sees a scrape a little after Prometheus began it, and
	// Prometheus may shift its time by 2 ms. The time of the query is later.
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
	heard := make(chan word)
	ended := make(chan struct{})
	tell := func(x word) {
		select {
		case heard <- x:
		case <-ended:
		}
	}
	c := testConfig()
	c.Prometheus, c.Interval, c.Timeout = url, 300*time.Millisecond, patience
	c.Report = func(address string, r pool.Report) { tell(word{address: address, report: r}) }
	c.Listing = func(address string, _ time.Time, cached pool.CacheSet) { tell(word{address: address, cached: cached}) }
	c.Failed = func(address string, err error) { tell(word{address: address, err: err.Error()}) }
	c.Silent = c.Failed
	p, err := New(c)
	require.NoError(t, err)
	running(t, p)
	t.Cleanup(func() { close(ended) })
	p.Follow([]string{a.address, b.address, "127.0.0.1:1"})

	// Each scrape is reported once, in order, with its own time.
	reports := map[string][]pool.Report{}
	for len(reports[a.address]) < 5 || len(reports[b.address]) < 5 {
		switch x := within(t, heard, "reports of both"); {
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

	// A job's times are the means of the report after it, and its project is listed.
	resp, err := a.Client().Post(a.URL+"/v1/jobs", "application/json", strings.NewReader(example.Job()))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	facts := within(t, a.jobs, "the job's record").Facts
	for means, listed := false, false; !means || !listed; {
		switch x := within(t, heard, "the job's times and project"); {
		case x.cached != nil:
			listed = listed || x.address == a.address && x.cached.Contains(intake.Key("12345"))
		case x.err == "" && !math.IsNaN(x.report.Wait):
			require.Equal(t, a.address, x.address)
			assert.InDelta(t, facts.Wait.Seconds(), x.report.Wait, 1e-9)
			assert.Equal(t, 1.0, x.report.Completed)
			means = true
		}
	}

	// An upstream that can no longer be scraped is forgotten at once; the other stays.
	a.Close()
	gone := "upstream " + a.address + ": metrics: from Prometheus: " + noMetrics
	for within(t, heard, "that a is gone").err != gone {
	}
	for {
		x := within(t, heard, "a report of b")
		if x.address == b.address && x.err == "" && x.cached == nil {
			b.check(t, x.report)
			break
		}
		require.False(t, x.address == a.address && x.err == "" && x.cached == nil, "a report of one that is gone")
	}
}

// Metrics with labels and scales are asked for in one query with the others.
func TestRealPrometheusOfOtherServers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, vllmPage)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	c := testConfig()
	c.Prometheus, c.Timeout = startPrometheus(t, address), patience
	c.Names = vllmNames()
	var reports []pool.Report
	c.Report = func(_ string, r pool.Report) { reports = append(reports, r) }
	p := newPrometheus(c)
	t.Cleanup(p.client.http.CloseIdleConnections)
	t.Cleanup(p.server.http.CloseIdleConnections)
	p.Follow([]string{address})
	require.Eventually(t, func() bool { p.poll(t.Context(), false); return len(reports) > 0 }, patience, 100*time.Millisecond)
	assert.Equal(t, byPriority(7, 0), reports[0].Running)
	assert.Equal(t, byPriority(2, 0), reports[0].Stalled)
	assert.InDelta(t, 4, reports[0].CoresBusy, 1e-9)
	assert.Equal(t, total{5, 10}, p.last[address].waits)
}
