package report

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// read returns the metrics for valid names.
func read(names Names) metrics { return names.read(new(settings.Faults)) }

func readLoad(text string, names Names) (pool.Report, total, error) {
	f, err := readPage(http.Header{}, strings.NewReader(text), read(names))
	if err != nil {
		return pool.Report{}, total{}, err
	}
	return loadOf(f, read(names))
}

func TestLoadReadsAGoodPage(t *testing.T) {
	r, waits, err := readLoad(goodPage, Default().Names)
	require.NoError(t, err)
	assert.Equal(t, pool.Report{
		Stalled: byPriority(7, 2), ByPriority: true, Running: byPriority(12, 3), Cores: 16, CoresBusy: 15,
		Completed: 1110, Begun: 1100, Failed: 10,
	}, r)
	assert.Equal(t, total{2040, 1100}, waits)
}

func TestLoadIsNothingWithoutItsGauges(t *testing.T) {
	const high = `ruleserver_stalled_joblets{priority="high"} 2`
	const low = `ruleserver_jobs_running{priority="low"} 12`
	for _, c := range []struct{ name, page, want string }{
		{"empty", "", "metric ruleserver_stalled_joblets is missing, or NaN"},
		{"no running", "ruleserver_stalled_joblets 1\n", "metric ruleserver_jobs_running is missing, or NaN"},
		{"NaN", "ruleserver_jobs_running 3\nruleserver_stalled_joblets NaN\n", "metric ruleserver_stalled_joblets is missing, or NaN"},
		{"negative", change(t, low, `ruleserver_jobs_running{priority="low"} -1`), "metric ruleserver_jobs_running is -1, not between 0 and 1e+12"},
		{"infinite", change(t, low, `ruleserver_jobs_running{priority="low"} +Inf`), "metric ruleserver_jobs_running is +Inf, not between 0 and 1e+12"},
		{"absurd", change(t, low, `ruleserver_jobs_running{priority="low"} 1e300`), "metric ruleserver_jobs_running is 1e+300, not between 0 and 1e+12"},
		{"a summary", "# TYPE ruleserver_stalled_joblets summary\nruleserver_stalled_joblets_sum 1\n", "metric ruleserver_stalled_joblets is missing, or NaN"},
		{"a word", change(t, high, "ruleserver_stalled_joblets many"), `metric ruleserver_stalled_joblets: strconv.ParseFloat: parsing "many": invalid syntax while parsing: "ruleserver_stalled_joblets many"`},
		{"no value", change(t, high, "ruleserver_stalled_joblets"), `metric ruleserver_stalled_joblets: expected value after metric, got "\n" ("INVALID") while parsing: "ruleserver_stalled_joblets\n"`},
		{"a long line", change(t, high, `ruleserver_stalled_joblets{a="`+strings.Repeat("x", maxLineBytes)+`"} 1`), "metric ruleserver_stalled_joblets: a line is longer than 8192 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readLoad(c.page, Default().Names)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestLoadLeavesOpenWhatItCannotBelieve(t *testing.T) {
	const (
		failed = `ruleserver_jobs_completed_total{priority="low",outcome="failed"} `
		high   = `ruleserver_stalled_joblets{priority="high"} 2`
		twice  = `ruleserver_stalled_joblets{kind="operators",priority="high"} 2` + "\n" +
			`ruleserver_stalled_joblets{priority="high",kind="feed_source"} 3.5`
	)
	stalled := func(low, high float64) func(*pool.Report) {
		return func(r *pool.Report) { r.Stalled = byPriority(low, high) }
	}
	for _, c := range []struct {
		name, line, by string
		differs        func(*pool.Report)
	}{
		{"no cores", "ruleserver_cores 16", "", func(r *pool.Report) { r.Cores = 0 }},
		{"cores that are no number", "ruleserver_cores 16", "ruleserver_cores many", func(r *pool.Report) { r.Cores = 0 }},
		{"negative cores", "ruleserver_cores 16", "ruleserver_cores -1", func(r *pool.Report) { r.Cores = 0 }},
		{"absurd cores", "ruleserver_cores 16", "ruleserver_cores 1e13", func(r *pool.Report) { r.Cores = 0 }},
		{"a share of a core", "ruleserver_cores 16", "ruleserver_cores 0.5", func(r *pool.Report) { r.Cores = 1 }},
		{"busy NaN", "ruleserver_cores_busy 15", "ruleserver_cores_busy NaN", func(r *pool.Report) { r.CoresBusy = -1 }},
		{"no busy", "ruleserver_cores_busy 15", "", func(r *pool.Report) { r.CoresBusy = -1 }},
		{"none busy", "ruleserver_cores_busy 15", "ruleserver_cores_busy 0", func(r *pool.Report) { r.CoresBusy = 0 }},
		{"completed infinite", failed + "10", failed + "Inf", func(r *pool.Report) { r.Completed, r.Failed = -1, -1 }},
		{"waits infinite", `ruleserver_wait_seconds_count{priority="high"} 100`, `ruleserver_wait_seconds_count{priority="high"} +Inf`, func(r *pool.Report) { r.Begun = 0 }},
		{"one priority only", high, "", stalled(7, 0)},
		{"an unheard-of priority", high, strings.Replace(high, "high", "urgent", 1), stalled(9, 0)},
		{"no priority", high, "ruleserver_stalled_joblets 2", stalled(9, 0)},
		{"other labels", high, twice, stalled(7, 5.5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, _, err := readLoad(goodPage, Default().Names)
			require.NoError(t, err)
			c.differs(&want)
			got, _, err := readLoad(change(t, c.line, c.by), Default().Names)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestLoadReadsOtherNamesAndTypes(t *testing.T) {
	names := Default().Names
	names.Stalled, names.Running, names.Wait, names.PrefixCache = "scheduler_stalled_promises", `{"jobs.active"}`, "wait", "text * 4"
	r, waits, err := readLoad(`scheduler_stalled_promises 100
# TYPE "jobs.active" counter
{"jobs.active",priority="high"} 4
# TYPE wait summary
wait{quantile="0.5"} 1
wait_sum 12
wait_count 6
# TYPE text_queries_total counter
text_queries_total 1000
# TYPE text_hits_total counter
text_hits_total 400
# TYPE answer untyped
answer 3
`, names)
	require.NoError(t, err)
	assert.Equal(t, pool.Report{Stalled: byPriority(100, 0), Running: byPriority(0, 4), CoresBusy: -1, Completed: -1, Begun: 6, Read: 2400, Failed: -1}, r)
	assert.Equal(t, total{12, 6}, waits)
}

func TestMeanIsOfTheDifference(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name        string
		before, now total
		want        float64
	}{
		{"new jobs", total{10, 5}, total{16, 8}, 2},
		{"instant jobs", total{10, 5}, total{10, 8}, 0},
		{"from the first on", total{0, 0}, total{6, 3}, 2},
		{"no new jobs", total{10, 5}, total{10, 5}, nan},
		{"restarted", total{10, 5}, total{1, 2}, nan},
		{"restarted, with as many jobs since", total{10, 5}, total{1, 6}, nan},
		{"not known before", unknown, total{1, 2}, nan},
		{"not known now", total{1, 2}, unknown, nan},
	} {
		assert.InDelta(t, c.want, c.now.mean(c.before), 0, c.name)
	}
}

func vllmNames() Names {
	names := Default().Names
	names.Running = `vllm:num_requests_running{model_name="llama"}`
	names.Stalled = `vllm:num_requests_waiting{model_name="llama", engine="0"}`
	names.CoresBusy = `vllm:kv_cache_usage_perc * 16`
	names.Wait = `vllm:request_queue_time_milliseconds{model_name="llama"} * 0.001`
	names.Completed = none
	return names
}

// Every format that Prometheus accepts is read, and a fault in another line of the page is
// ignored.
func TestPagesOfRealServers(t *testing.T) {
	const text, gauges = "text/plain; version=0.0.4; charset=utf-8", "ruleserver_jobs_running 3\nruleserver_stalled_joblets 2\n"
	for _, c := range []struct{ name, kind, page string }{
		{"version 1.0.0", "text/plain; version=1.0.0; charset=utf-8; escaping=underscores", gauges},
		{"no type", "", gauges},
		{"a type with a comma", "text/plain, version=0.0.4", gauges},
		{"a framework's default type", "text/html; charset=utf-8", gauges},
		{"OpenMetrics", openMetrics + "; version=1.0.0; charset=utf-8", `# TYPE build info
build_info{version="1"} 1
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_bucket{le="0.5"} 9 # {trace_id="abc"} 0.3 1700000000.1
# TYPE odd unknown
odd 1
# TYPE ruleserver_jobs_running gauge
ruleserver_jobs_running 3 1700000000.123
ruleserver_stalled_joblets 2 # {trace_id="abc"} 0.3
# EOF
`},
		{"an exemplar in plain text", text, "ruleserver_jobs_running 3\nruleserver_stalled_joblets 2 # {a=\"b\"} 1\n"},
		{"no final end of line", text, gauges[:len(gauges)-1]},
		{"CRLF", text, strings.ReplaceAll(gauges, "\n", "\r\n")},
		{"spaces and tabs", text, "\n  ruleserver_jobs_running\t3 \n\n ruleserver_stalled_joblets  2 1700000000123\n"},
		{"samples before TYPE", text, gauges + "# TYPE ruleserver_jobs_running gauge\n"},
		{"HELP and TYPE twice", text, gauges + strings.Repeat("# HELP a b\n# TYPE a gauge\n# TYPE ruleserver_jobs_running counter\n", 2)},
		{"a long HELP", text, "# HELP odd " + strings.Repeat("x", 10*maxLineBytes) + "\n" + gauges},
		{"a long line of another metric", text, "odd{a=\"" + strings.Repeat("x", 10*maxLineBytes) + "\"} 1\n" + gauges},
		{"many lines", text, strings.Repeat("#\n", 100_000) + gauges},
		{"nonsense elsewhere", text, "odd many\nodd\nodd 0x10\nmy.metric 1\nodd{a-b=\"c\"} 1\nodd{a=\"\xff\"} 1\n\x00\n" + gauges},
		{"a series twice, as in merged pages", text, gauges + gauges},
		{"NaN from one of two engines", text, gauges + "ruleserver_jobs_running{engine=\"1\"} NaN\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := readPage(http.Header{"Content-Type": {c.kind}}, strings.NewReader(c.page), read(Default().Names))
			require.NoError(t, err)
			r, _, err := loadOf(f, read(Default().Names))
			require.NoError(t, err)
			assert.Equal(t, byPriority(3, 0), r.Running)
			assert.Equal(t, byPriority(2, 0), r.Stalled)
		})
	}
}

func TestPagesWithoutMetrics(t *testing.T) {
	for kind, c := range map[string]struct{ page, want string }{
		"text/html; charset=utf-8":      {"<html></html>", `the page has none of the configured metrics; its content type is "text/html"`},
		openMetrics + "; version=1.0.0": {goodPage, "truncated: it does not end with # EOF"},
	} {
		_, err := readPage(http.Header{"Content-Type": {kind}}, strings.NewReader(c.page), read(Default().Names))
		assert.EqualError(t, err, c.want)
	}
}

// FuzzMetrics checks that no input gives a report out of bounds. Pages without comments and
// labels are compared with a naive reader.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte(goodPage))
	f.Add([]byte("ruleserver_stalled_joblets 1\nruleserver_jobs_running 2\nruleserver_jobs_running 3\n"))
	f.Add([]byte("ruleserver_stalled_joblets{priority=\"high\"} NaN\n"))
	f.Add([]byte("# TYPE ruleserver_wait_seconds summary\nruleserver_wait_seconds_sum 1\nruleserver_wait_seconds_count 1\n"))
	f.Add([]byte("{\"a b\",c=\"d\"} 1e3 12\n"))
	f.Add([]byte("ruleserver_stalled_joblets 1\nruleserver_jobs_running.3\n"))
	names := Default().Names
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, err := readPage(http.Header{}, bytes.NewReader(data), read(names))
		if err != nil {
			return
		}
		r, waits, err := loadOf(sums, read(names))
		if err != nil {
			return
		}
		requireBounds(t, r)
		for _, before := range []total{{}, unknown, waits} {
			require.False(t, waits.mean(before) < 0)
		}
		if !bytes.ContainsAny(data, "#{\"\x00") {
			require.Equal(t, naiveSum(string(data), names.Stalled), r.Stalled[selection.Low])
			require.Equal(t, naiveSum(string(data), names.Running), r.Running[selection.Low])
		}
	})
}

// requireBounds checks the figures of a report.
func requireBounds(t *testing.T, r pool.Report) {
	t.Helper()
	for p := range selection.Priorities {
		require.True(t, r.Stalled[p] >= 0 && r.Running[p] >= 0, "%v", r)
	}
	require.True(t, r.Cores >= 0 && r.Cores <= 2*maxCount, "%v", r.Cores)
	require.True(t, r.CoresBusy == -1 || r.CoresBusy >= 0, "%v", r.CoresBusy)
	require.True(t, r.Completed == -1 || r.Completed >= 0, "%v", r.Completed)
}

// naiveSum returns the first value of a metric on a page without comments and labels: later ones belong to the
// same series.
func naiveSum(page, name string) float64 {
	for line := range strings.SplitSeq(page, "\n") {
		words := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool { return r == ' ' || r == '\t' })
		if len(words) > 1 && words[0] == name {
			x, _ := strconv.ParseFloat(words[1], 64)
			return x
		}
	}
	return 0
}

// FuzzMetric: a metric that was parsed is printed in the same form, and selects the samples
// that it names.
func FuzzMetric(f *testing.F) {
	f.Add(`vllm:num_requests_running{model_name="llama", engine="0",} * 0.5`)
	f.Add("a{b=\"\\u00e9\\\"\"}")
	f.Add(`{"a.b"}`)
	f.Add(`none{}`)
	f.Add(`a{b=" * 2"} * 3`)
	f.Add("a{b=\"\t\x7f\u2028\"}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetric(text)
		if err != nil || !model.LegacyValidation.IsValidMetricName(m.name) {
			return
		}
		again, err := parseMetric(m.String())
		require.NoError(t, err, "%q", m.String())
		again.scale = m.scale
		require.Equal(t, m, again)
		series := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, m.name))
		for name, value := range m.labels {
			series.Set(string(name), string(value))
		}
		require.True(t, m.matches(series.Labels()))
	})
}
