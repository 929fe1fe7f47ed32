package report

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
)

// newAsked returns a Source that queries a Prometheus server for upstreams that have reported before.
func newAsked(t *testing.T, handler http.HandlerFunc, set []string, changes ...func(*Config)) *recorded {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	r := newRecorded(t, append([]func(*Config){func(c *Config) {
		c.Prometheus, c.CachePath, c.Timeout, c.Reported = server.URL, none, patience, set
	}}, changes...)...)
	r.adjust(t.Context(), set)
	return r
}

// noMetrics is the failure of an upstream that is unknown to Prometheus.
const noMetrics = "no metrics of this upstream: either it is not scraped, or the label instance is not its address"

func TestPrometheusReportsAllUpstreams(t *testing.T) {
	queries, asked := 0, ""
	a := newAsked(t, func(w http.ResponseWriter, r *http.Request) {
		queries++
		assert.Equal(t, "/behind/a/path/api/v1/query", r.URL.Path)
		asked = r.URL.Query().Get("query")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped([]byte(vectorOf(
			scraped("a:1", 2.5, nil), scraped("somebody-elses:1", 0, nil),
			scraped("B:01", 0.5, map[string]string{"pilotfish=stalled,priority=high": "", "pilotfish=cores": ""}), // another spelling of b:1
		))))
	}, []string{"a:1", "b:1", "a:1"}, func(c *Config) { c.Prometheus += "/behind/a/path/" })
	before := time.Now()
	a.once(t, a.pollPrometheus)
	after := time.Now()
	assert.Empty(t, a.failed)
	assert.Equal(t, 1, queries)
	require.Len(t, a.reports["a:1"], 1)
	require.Len(t, a.reports["b:1"], 1)
	require.Len(t, a.reports, 2)

	r, other := a.reports["a:1"][0], a.reports["b:1"][0]
	assert.Equal(t, byPriority(7, 2), r.Stalled)
	assert.Equal(t, byPriority(12, 3), r.Running)
	assert.Equal(t, 16, r.Cores)
	assert.Equal(t, 15.0, r.CoresBusy)
	assert.Equal(t, 1110.0, r.Completed)
	assert.True(t, r.Cached == nil)
	assert.True(t, math.IsNaN(r.Wait), "nothing to compare with yet")
	age := 2500 * time.Millisecond
	assert.False(t, r.At.Before(before.Add(-age)) || r.At.After(after.Add(-age)), "%v", r.At)
	assert.Equal(t, byPriority(7, 0), other.Stalled)
	assert.Zero(t, other.Cores, "it does not say")
	assert.InDelta(t, 2, other.At.Sub(r.At).Seconds(), 1e-6)

	for _, part := range []string{
		`label_replace(sum by (instance, job, priority) ({__name__="ruleserver_stalled_joblets"} > -Inf), "pilotfish", "stalled", "", "") or `,
		` or label_replace(sum by (instance, job, priority) ({__name__="ruleserver_jobs_completed_total",outcome="failed"} > -Inf), "pilotfish", "failed", "", "")`,
		` or label_replace(sum by (instance, job, priority) ({__name__="ruleserver_wait_seconds_sum"} > -Inf), "pilotfish", "wait_sum", "", "")`,
		` or label_replace(sum by (instance, job, priority) ({__name__="ruleserver_wait_seconds_count"} > -Inf), "pilotfish", "wait_count", "", "")`,
		` or label_replace(min by (instance, job) (timestamp({__name__="ruleserver_stalled_joblets"})), "pilotfish", "scraped", "", "")`,
	} {
		assert.Contains(t, asked, part)
	}
	assert.Equal(t, 9, strings.Count(asked, "label_replace"))
}

func TestPrometheusReportsOnce(t *testing.T) {
	answer := vectorOf(scraped("a:1", 5, nil))
	a := newAsked(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }, []string{"a:1"}, func(c *Config) { c.Reported = nil })
	a.once(t, a.pollPrometheus)
	require.Len(t, a.reports, 1)
	a.once(t, a.pollPrometheus)
	assert.Empty(t, a.reports, "no scrape since then")

	answer = "garbage"
	a.once(t, a.pollPrometheus)
	require.Len(t, a.failed, 1)

	answer = vectorOf(scraped("a:1", 0, map[string]string{
		"pilotfish=wait_sum,priority=low":   "2030",
		"pilotfish=wait_count,priority=low": "1010",
	}))
	a.once(t, a.pollPrometheus)
	assert.Equal(t, 3.0, a.reports["a:1"][0].Wait, "a query that fails leaves the report before in place")

	a.adjust(t.Context(), nil)
	a.once(t, a.pollPrometheus)
	a.adjust(t.Context(), []string{"a:1"})
	answer = "garbage"
	a.once(t, a.pollPrometheus)
	assert.Empty(t, a.failed)
	assert.Contains(t, a.silent["a:1"][0], "upstream a:1: metrics: from Prometheus: ")
	answer = vectorOf(scraped("a:1", 0, nil))
	a.once(t, a.pollPrometheus)
	require.Len(t, a.reports, 1, "one that came back is new")
	assert.True(t, math.IsNaN(a.reports["a:1"][0].Wait))
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
			"pilotfish=running,priority=high": "", "pilotfish=running,priority=low": "",
		}), "metric ruleserver_jobs_running is missing, or NaN"},
		{"no number", scraped("b:1", 1, map[string]string{"pilotfish=stalled,priority=low": "NaN", "pilotfish=stalled,priority=high": ""}),
			"metric ruleserver_stalled_joblets is missing, or NaN"},
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
			a.once(t, a.pollPrometheus)
			evidence := 1
			if strings.HasPrefix(c.name, "scraped twice") {
				evidence = 0
			}
			assert.Equal(t, evidence, a.unreported["b:1"])
			assert.Contains(t, a.reports, "a:1")
			assert.NotContains(t, a.reports, "b:1")
			assert.Equal(t, map[string][]string{"b:1": {"upstream b:1: metrics: from Prometheus: " + c.want}}, a.failed)
		})
	}
}

// Values missing in a partial response are unknown, and do not count against the upstream.
func TestPrometheusWarnsOfAPartialResponse(t *testing.T) {
	partial := strings.Replace(vectorOf(scraped("a:1", 1, nil)), `{"status"`, `{"warnings":["1 of 2 stores does not respond","x"],"status"`, 1)
	a := newAsked(t, say(partial), []string{"a:1", "b:1"})
	a.once(t, a.pollPrometheus)
	assert.Contains(t, a.reports, "a:1")
	assert.Empty(t, a.unreported)
	assert.Equal(t, "upstream b:1: metrics: from Prometheus: "+noMetrics+"; Prometheus warns that its response may be partial: 1 of 2 stores does not respond", a.failed["b:1"][0])
}

// Metrics with labels and a scale are read from an upstream that has other series, too.
func TestPrometheusOfOtherServers(t *testing.T) {
	asked := ""
	a := newAsked(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("query")
		of := func(figure, value string) string { return element("pilotfish="+figure+",job=llm,instance=a:1", value) }
		_, _ = io.WriteString(w, vectorOf(of("running", "7"), of("stalled", "2"), of("cores_busy", "0.25"), of("wait_sum", "5000"), of("wait_count", "10"), of("scraped", "1763677244.5")))
	}, []string{"a:1"}, func(c *Config) { c.Names = vllmNames() })
	a.once(t, a.pollPrometheus)
	assert.Empty(t, a.failed)
	require.Len(t, a.reports["a:1"], 1)
	r := a.reports["a:1"][0]
	assert.Equal(t, []any{byPriority(7, 0), byPriority(2, 0), 4.0}, []any{r.Running, r.Stalled, r.CoresBusy})
	assert.Equal(t, total{5, 10}, a.all["a:1"].before)
	assert.Contains(t, asked, `({__name__="vllm:request_queue_time_milliseconds_sum",model_name="llama"} > -Inf)`)
	assert.Contains(t, asked, `timestamp({__name__="vllm:num_requests_waiting",engine="0",model_name="llama"})`)
	assert.NotContains(t, asked, `"completed"`)
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
		{"elsewhere", http.RedirectHandler("http://prometheus.test/graph", http.StatusFound).ServeHTTP, `status 302 Found, a redirect to "http://prometheus.test/graph"`},
		{"garbage", say("<html>"), "jsontext: invalid character '<' at start of value"},
		{"an error", say(`{"status":"error","errorType":"timeout","error":"query timed out"}`), `status "error" and a result of type "", not "success" and "vector"`},
		{"a matrix", say(strings.ReplaceAll(good, "vector", "matrix")), `status "success" and a result of type "matrix", not "success" and "vector"`},
		{"no value", say(vectorOf(`{"metric":{"instance":"a:1"},"histogram":[1,{}]}`)), "a sample has no value"},
		{"half a value", say(vectorOf(`{"metric":{"instance":"a:1"},"value":[1]}`)), "too few array elements"},
		{"a bent value", say(vectorOf(element("instance=a:1", "seven"))), `parsing "seven": invalid syntax`},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"warnings":[`)
			for range 4000 {
				_, _ = io.WriteString(w, `"`+strings.Repeat("x", 10_000)+`",`)
			}
		}, "longer than 33554432 bytes"},
		{"silent", hang, "no complete response within 50ms"},
		{"silent within its body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, good[:100])
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, "no complete response within 50ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAsked(t, c.handler, []string{"a:1", "b:1"}, func(cfg *Config) {
				if strings.HasPrefix(c.name, "silent") {
					cfg.Timeout = 50 * time.Millisecond
				}
			})
			a.once(t, a.pollPrometheus)
			assert.Empty(t, a.reports)
			assert.Empty(t, a.unreported, "the fault is Prometheus's")
			for _, address := range []string{"a:1", "b:1"} {
				require.Len(t, a.failed[address], 1)
				assert.Regexp(t, "^upstream "+address+": metrics: from Prometheus: ", a.failed[address][0])
				assert.Contains(t, a.failed[address][0], c.want)
			}
		})
	}
}

const queryPath = "prometheus:9090/api/v1/query"

func byPrometheus(c *Config) { c.Prometheus = "http://prometheus:9090" }

func TestRunAsksPrometheusForLoadAndUpstreamsForListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, byPrometheus)
		all := addresses(5)
		f.during(t, func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Empty(t, f.asked, "without upstreams there is nothing to ask")
			f.Follow(all)
			time.Sleep(600 * time.Second)
		})
		queries := f.asked[queryPath]
		require.InDelta(t, 120, len(queries), 6)
		assert.LessOrEqual(t, queries[0]-time.Minute, time.Second, "the first comes soon after the first set")
		requireOwnPace(t, queries, 5*time.Second)
		require.Len(t, f.asked, 1+len(all), "nothing else was asked")
		for _, address := range all {
			require.Len(t, f.reports[address], len(queries))
			for i, r := range f.reports[address] {
				require.InDelta(t, (queries[i] - time.Second).Seconds(), r.At.Sub(f.begun).Seconds(), 0.002, "Prometheus has a resolution of milliseconds")
			}
			asked := f.asked[address+"/v1/cache/projects"]
			require.InDelta(t, 20, len(asked), 2)
			require.Less(t, asked[0]-time.Minute, 3*time.Second)
			require.Len(t, f.listings[address], len(asked))
			for i, l := range f.listings[address] {
				require.Equal(t, asked[i], l.at.Sub(f.begun))
				require.True(t, l.cached.Contains(intake.Key("7")))
			}
			require.Empty(t, f.failed[address])
			require.Empty(t, f.silent[address])
		}
	})
}

// looked is the time of the queries in these tests, on Prometheus's clock.
const looked = 1763677245.5

// element formats a sample of a vector as JSON; labels is a list of "name=value".
func element(labels, value string) string {
	var pairs []string
	for label := range strings.SplitSeq(labels, ",") {
		name, text, _ := strings.Cut(label, "=")
		pairs = append(pairs, fmt.Sprintf("%q:%q", name, text))
	}
	return fmt.Sprintf(`{"metric":{%s},"value":[%f,%q]}`, strings.Join(pairs, ","), looked, value)
}

// scraped is all series of the upstream of goodPage in Prometheus, scraped age seconds before
// looked. change replaces values by their labels, or removes one with "".
func scraped(instance string, age float64, change map[string]string) string {
	var all []string
	for _, s := range []struct{ labels, value string }{
		{"pilotfish=stalled,priority=high", "2"},
		{"pilotfish=stalled,priority=low", "7"},
		{"pilotfish=running,priority=high", "3"},
		{"pilotfish=running,priority=low", "12"},
		{"pilotfish=cores", "16"},
		{"pilotfish=cores_busy", "15"},
		{"pilotfish=completed,priority=high", "100"},
		{"pilotfish=completed,priority=low", "1010"},
		{"pilotfish=wait_sum,priority=high", "40"},
		{"pilotfish=wait_sum,priority=low", "2000"},
		{"pilotfish=wait_count,priority=high", "100"},
		{"pilotfish=wait_count,priority=low", "1000"},
		{"pilotfish=scraped", fmt.Sprintf("%.3f", looked-age)},
	} {
		value, changed := change[s.labels]
		if !changed {
			value = s.value
		}
		if value != "" {
			all = append(all, element(s.labels+",job=rules,instance="+instance, value))
		}
	}
	return strings.Join(all, ",")
}

// vectorOf returns a complete response.
func vectorOf(elements ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(elements, ",") + "]}}\n"
}

// However many labels a sample has, unused labels take no memory.
func TestAHostileVectorIsSmall(t *testing.T) {
	var many strings.Builder
	for i := range 1 << 19 {
		fmt.Fprintf(&many, `"l%d":"",`, i)
	}
	text := strings.ReplaceAll(vectorOf(element("instance=b", "1")), `{"instance"`, `{`+many.String()+`"instance"`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readVector(strings.NewReader(text), func(l sampleLabels, _, _ float64) { assert.Equal(t, "b", l.Instance) })
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(text)))
}

// FuzzVector checks that no input gives a report out of bounds.
func FuzzVector(f *testing.F) {
	f.Add([]byte(vectorOf()))
	f.Add([]byte(vectorOf(scraped("", 1, nil))))
	f.Add([]byte(vectorOf(scraped("", 1, map[string]string{"pilotfish=cores": "NaN"}))))
	f.Add([]byte(`{"status":"error","errorType":"timeout","error":"query timed out"}`))
	names := Default().Names
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(scrape)
		if _, err := readVector(strings.NewReader(string(data)), s.add); err != nil {
			return
		}
		r, _, err := s.load(noon, read(names))
		if err != nil {
			return
		}
		requireBounds(t, r)
		require.False(t, r.At.After(noon) || r.At.Before(noon.Add(-longest)), "%v", r.At)
	})
}
