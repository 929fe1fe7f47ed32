package report

import (
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// asked is a Prometheus source, polled by hand.
type asked struct {
	*Prometheus
	reports map[string]pool.Report
	errs    map[string]string
}

func newAsked(t *testing.T, handler http.HandlerFunc, set []string, changes ...func(*Config)) *asked {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	a := &asked{}
	c := testConfig()
	c.Source, c.Timeout, c.Prometheus = FromPrometheus, patience, new(Server)
	*c.Prometheus = Server{URL: server.URL, InstanceLabel: "instance"}
	c.Report = func(address string, r pool.Report) { a.reports[address] = r }
	c.Listing = func(string, time.Time, pool.CacheSet) { t.Error("nobody asked for a listing") }
	c.Failed = func(address string, err error) { a.errs[address] = err.Error() }
	for _, change := range changes {
		change(&c)
	}
	p, err := NewPrometheus(c)
	require.NoError(t, err)
	t.Cleanup(p.client.http.CloseIdleConnections)
	t.Cleanup(p.server.http.CloseIdleConnections)
	p.Follow(set)
	a.Prometheus = p
	return a
}

func (a *asked) once(t *testing.T) {
	t.Helper()
	a.reports, a.errs = map[string]pool.Report{}, map[string]string{}
	a.poll(t.Context(), false)
}

// noMetrics is the failure of an upstream that Prometheus does not know.
const noMetrics = "no metrics of this upstream: either it is not scraped, or the instance label is not its address"

func say(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
}

func TestPrometheusTellsTheLoadOfAll(t *testing.T) {
	queries := 0
	a := newAsked(t, func(w http.ResponseWriter, r *http.Request) {
		queries++
		assert.Equal(t, "/behind/a/path/api/v1/query", r.URL.Path)
		assert.Equal(t, `sum by (__name__, instance, job, priority) ({__name__=~"`+
			`ruleserver_stalled_joblets|ruleserver_jobs_running|ruleserver_cores|ruleserver_cores_busy|ruleserver_jobs_completed_total|`+
			`ruleserver_wait_seconds_sum|ruleserver_wait_seconds_count|ruleserver_execution_seconds_sum|ruleserver_execution_seconds_count|`+
			`ruleserver_response_seconds_sum|ruleserver_response_seconds_count"})`+
			` or label_replace(sum by (__name__, instance, job, priority) ({__name__="ruleserver_jobs_completed_total",outcome="failed"}), "pilotfish", `+
			`"ruleserver_jobs_completed_total{outcome=\"failed\"}", "", "")`+
			` or label_replace(min by (instance, job) (timestamp({__name__="ruleserver_stalled_joblets"})), "pilotfish", "scraped", "", "")`,
			r.URL.Query().Get("query"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped([]byte(vectorOf(
			scraped("a:1", 2.5, nil), scraped("somebody-elses:1", 0, nil),
			scraped("b:1", 0.5, map[string]string{"__name__=ruleserver_stalled_joblets,priority=high": "", "__name__=ruleserver_cores": ""}),
		))))
	}, []string{"a:1", "b:1", "a:1"}, func(c *Config) { c.Prometheus.URL += "/behind/a/path/" })
	before := time.Now()
	a.once(t)
	after := time.Now()
	assert.Empty(t, a.errs)
	assert.Equal(t, 1, queries)
	require.ElementsMatch(t, []string{"a:1", "b:1"}, slices.Collect(maps.Keys(a.reports)))

	r := a.reports["a:1"]
	assert.Equal(t, byPriority(7, 2), r.Stalled)
	assert.Equal(t, byPriority(12, 3), r.Running)
	assert.Equal(t, 16, r.Cores)
	assert.Equal(t, 15.0, r.CoresBusy)
	assert.Equal(t, 1110.0, r.Completed)
	assert.True(t, r.Cached == nil)
	assert.True(t, math.IsNaN(r.Wait) && math.IsNaN(r.Response), "nothing to compare with yet")
	age := 2500 * time.Millisecond
	assert.False(t, r.At.Before(before.Add(-age)) || r.At.After(after.Add(-age)), "%v", r.At)
	assert.Equal(t, byPriority(7, 0), a.reports["b:1"].Stalled)
	assert.Zero(t, a.reports["b:1"].Cores, "it does not say")
	assert.InDelta(t, 2, a.reports["b:1"].At.Sub(r.At).Seconds(), 1e-6)
}

func TestPrometheusTellsNothingTwice(t *testing.T) {
	answer := vectorOf(scraped("a:1", 5, nil))
	a := newAsked(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }, []string{"a:1"})
	a.once(t)
	require.Len(t, a.reports, 1)
	a.once(t)
	assert.Empty(t, a.reports, "no scrape since then")

	answer = "garbage"
	a.once(t)
	require.Len(t, a.errs, 1)

	answer = vectorOf(scraped("a:1", 0, map[string]string{
		"__name__=ruleserver_wait_seconds_sum,priority=low":        "2030",
		"__name__=ruleserver_wait_seconds_count,priority=low":      "1010",
		"__name__=ruleserver_execution_seconds_sum,priority=low":   "9040",
		"__name__=ruleserver_execution_seconds_count,priority=low": "1020",
	}))
	a.once(t)
	assert.Equal(t, 3.0, a.reports["a:1"].Wait, "a query that fails leaves the report before in place")
	assert.Equal(t, 5.0, a.reports["a:1"].Response)

	answer = vectorOf(scraped("a:1", 3, nil))
	a.once(t)
	assert.Empty(t, a.reports, "another server scraped it earlier")
	assert.Empty(t, a.errs)

	a.Follow(nil)
	a.once(t)
	a.Follow([]string{"a:1"})
	a.once(t)
	require.Len(t, a.reports, 1, "one that came back is new")
	assert.True(t, math.IsNaN(a.reports["a:1"].Wait))
}

func TestPrometheusLimitsAFaultToItsUpstream(t *testing.T) {
	const noTime = "the time of its scrape is missing, or further than 1h0m0s from that of the query"
	good := scraped("a:1", 1, nil)
	for _, c := range []struct {
		name, elements, want string
	}{
		{"not scraped", "", noMetrics},
		{"under another label", strings.ReplaceAll(scraped("b:1", 1, nil), "instance", "address"), noMetrics},
		{"no running", scraped("b:1", 1, map[string]string{
			"__name__=ruleserver_jobs_running,priority=high": "", "__name__=ruleserver_jobs_running,priority=low": "",
		}), "metric ruleserver_jobs_running is missing"},
		{"no number", scraped("b:1", 1, map[string]string{"__name__=ruleserver_stalled_joblets,priority=low": "NaN"}),
			"metric ruleserver_stalled_joblets is NaN, not between 0 and 1e+12"},
		{"no time", scraped("b:1", 1, map[string]string{"pilotfish=scraped": ""}), noTime},
		{"a time long ago", scraped("b:1", 1e6, nil), noTime},
		{"no time at all", scraped("b:1", 1, map[string]string{"pilotfish=scraped": "NaN"}), noTime},
		{"scraped twice", scraped("b:1", 1, nil) + "," + strings.ReplaceAll(scraped("b:1", 1, nil), `"rules"`, `"pods"`),
			`two scrape jobs have this upstream, "rules" and "pods": only one may`},
	} {
		t.Run(c.name, func(t *testing.T) {
			elements := []string{good}
			if c.elements != "" {
				elements = append(elements, c.elements)
			}
			a := newAsked(t, say(vectorOf(elements...)), []string{"a:1", "b:1"})
			a.once(t)
			assert.Contains(t, a.reports, "a:1")
			assert.NotContains(t, a.reports, "b:1")
			assert.Equal(t, map[string]string{"b:1": "upstream b:1: metrics: Prometheus: " + c.want}, a.errs)
		})
	}
}

func TestPrometheusByAnotherLabel(t *testing.T) {
	var asked string
	a := newAsked(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("query")
		text := strings.ReplaceAll(vectorOf(scraped("a:1", 1, nil)), "instance", "address")
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "ruleserver_stalled_joblets", "stalled.promises"))
	}, []string{"a:1"}, func(c *Config) { c.Prometheus.InstanceLabel, c.Names.Stalled = "address", "stalled.promises" })
	a.once(t)
	assert.Empty(t, a.errs)
	assert.Equal(t, byPriority(7, 2), a.reports["a:1"].Stalled)
	assert.Contains(t, asked, `sum by (__name__, address, job, priority) ({__name__=~"stalled\\.promises|`)
	assert.Contains(t, asked, `min by (address, job) (timestamp({__name__="stalled.promises"}))`)
}

func TestPrometheusNamesWhatIsBroken(t *testing.T) {
	good := vectorOf(scraped("a:1", 1, nil))
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a failure", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"status":"error"}`, http.StatusServiceUnavailable)
		}, "status 503 Service Unavailable"},
		{"elsewhere", http.RedirectHandler("/graph", http.StatusFound).ServeHTTP, "status 302 Found"},
		{"empty", say(""), "empty"},
		{"garbage", say("<html>"), "jsontext: invalid character '<' at start of value"},
		{"an error", say(`{"status":"error","errorType":"timeout","error":"query timed out"}`), `status "error" and a result of type "", not "success" and "vector"`},
		{"a matrix", say(strings.ReplaceAll(good, "vector", "matrix")), `status "success" and a result of type "matrix", not "success" and "vector"`},
		{"no array", say(`{"status":"success","data":{"resultType":"vector","result":{}}}`), "the result is not an array"},
		{"null", say(`{"status":"success","data":{"resultType":"vector","result":null}}`), "the result is not an array"},
		{"no value", say(vectorOf(`{"metric":{"instance":"a:1"},"histogram":[1,{}]}`)), "a sample has no value"},
		{"half a value", say(vectorOf(`{"metric":{"instance":"a:1"},"value":[1]}`)), "too few array elements"},
		{"a bent value", say(vectorOf(element("instance=a:1", "seven"))), `parsing "seven": invalid syntax`},
		{"more", say(good + good), "more follows after its end"},
		{"cut short", say(good[:len(good)/2]), "unexpected EOF"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"warnings":[`)
			for range 4000 {
				_, _ = io.WriteString(w, `"`+strings.Repeat("x", 10_000)+`",`)
			}
		}, "longer than 33554432 bytes"},
		{"a huge value", say(vectorOf(element("instance="+strings.Repeat("a", 900_000), "1"))), "a value is longer than 65536 bytes"},
		{"silent", hang, "no complete response within 2s"},
		{"silent within its body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, good[:100])
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, "no complete response within 2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAsked(t, c.handler, []string{"a:1", "b:1"}, func(cfg *Config) {
				if strings.HasPrefix(c.name, "silent") {
					cfg.Timeout = 2 * time.Second
				}
			})
			a.once(t)
			assert.Empty(t, a.reports)
			for _, address := range []string{"a:1", "b:1"} {
				assert.Regexp(t, "^upstream "+address+": metrics: Prometheus: ", a.errs[address])
				assert.Contains(t, a.errs[address], c.want)
			}
		})
	}
}
