package report

import (
	"io"
	"math"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// vllmPage is the metrics page of a server with two models, as vLLM has it.
const vllmPage = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama"} 3.0
vllm:num_requests_running{engine="1",model_name="llama"} 4.0
vllm:num_requests_running{engine="0",model_name="qwen"} 50.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama"} 2.0
vllm:num_requests_waiting{engine="0",model_name="qwen"} 60.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="llama"} 0.25
# TYPE vllm:request_queue_time_milliseconds histogram
vllm:request_queue_time_milliseconds_bucket{model_name="llama",le="+Inf"} 10
vllm:request_queue_time_milliseconds_sum{model_name="llama"} 5000
vllm:request_queue_time_milliseconds_count{model_name="llama"} 10
vllm:request_queue_time_milliseconds_bucket{model_name="qwen",le="+Inf"} 10
vllm:request_queue_time_milliseconds_sum{model_name="qwen"} 90000
vllm:request_queue_time_milliseconds_count{model_name="qwen"} 10
`

func vllmNames() Names {
	names := Default().Names
	names.Running = `vllm:num_requests_running{model_name="llama"}`
	names.Stalled = `vllm:num_requests_waiting{model_name="llama", engine="0"}`
	names.CoresBusy = `vllm:kv_cache_usage_perc * 16`
	names.Wait = `vllm:request_queue_time_milliseconds{model_name="llama"} * 0.001`
	names.Completed = noMetric
	return names
}

func TestLabelsAndScales(t *testing.T) {
	r, totals, err := readLoad(vllmPage, vllmNames())
	require.NoError(t, err)
	assert.Equal(t, pool.Report{Running: byPriority(7, 0), Stalled: byPriority(2, 0), CoresBusy: 4, Completed: -1, Failed: -1}, r)
	assert.Equal(t, total{5, 10}, totals.wait)
	assert.True(t, math.IsNaN(totals.execution.count))

	for want, change := range map[string]func(*Names){
		`metric vllm:num_requests_running{model_name="mistral"} is missing`:  func(n *Names) { n.Running = `vllm:num_requests_running{model_name="mistral"}` },
		`metric vllm:num_requests_running is 7e+12, not between 0 and 1e+12`: func(n *Names) { n.Running += " * 1e12" },
	} {
		names := vllmNames()
		change(&names)
		_, _, err := readLoad(vllmPage, names)
		assert.EqualError(t, err, want)
	}
	names := vllmNames()
	names.Wait = `vllm:request_queue_time_milliseconds{model_name="mistral"}`
	_, totals, err = readLoad(vllmPage, names)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(totals.wait.count))

	names.Running, names.Stalled = `vllm:num_requests_running{priority=""}`, noMetric
	r, _, err = readLoad(vllmPage, names)
	require.NoError(t, err)
	assert.Equal(t, pool.Report{Running: byPriority(57, 0), CoresBusy: 4, Completed: -1, Failed: -1}, r, "an empty label is one that is missing, as in PromQL")
}

// A query of Prometheus asks for a metric with labels apart, since its sums drop them.
func TestPrometheusOfOtherServers(t *testing.T) {
	asked := ""
	a := newAsked(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("query")
		sample := func(name, mark, value string) string {
			labels := "__name__=" + name + ",job=llm,instance=a:1"
			if mark != "" {
				return `{"metric":{"__name__":"` + name + `","job":"llm","instance":"a:1","pilotfish":` + mark + `},"value":[1763677245.5,"` + value + `"]}`
			}
			return element(labels, value)
		}
		_, _ = io.WriteString(w, vectorOf(
			sample("vllm:num_requests_running", `"vllm:num_requests_running{model_name=\"llama\"}"`, "7"),
			sample("vllm:num_requests_waiting", `"vllm:num_requests_waiting{model_name=\"llama\",engine=\"0\"}"`, "2"),
			sample("vllm:kv_cache_usage_perc", "", "0.25"),
			sample("vllm:request_queue_time_milliseconds_sum", `"vllm:request_queue_time_milliseconds_sum{model_name=\"llama\"}"`, "5000"),
			element("pilotfish=scraped,job=llm,instance=a:1", "1763677244.5"),
		))
	}, []string{"a:1"}, func(c *Config) { c.Names = vllmNames() })
	a.once(t)
	assert.Empty(t, a.errs)
	assert.Equal(t, byPriority(7, 0), a.reports["a:1"].Running)
	assert.Equal(t, byPriority(2, 0), a.reports["a:1"].Stalled)
	assert.InDelta(t, 4, a.reports["a:1"].CoresBusy, 0)
	assert.Contains(t, asked, `sum by (__name__, instance, job, priority) ({__name__=~"ruleserver_cores|vllm:kv_cache_usage_perc|`)
	assert.Contains(t, asked, ` or label_replace(sum by (__name__, instance, job, priority) ({__name__="vllm:num_requests_running",model_name="llama"}), `+
		`"pilotfish", "vllm:num_requests_running{model_name=\"llama\"}", "", "")`)
	assert.Contains(t, asked, `timestamp({__name__="vllm:num_requests_waiting"})`)
	assert.NotContains(t, asked, noMetric)
}

func TestNoListingIsAskedFor(t *testing.T) {
	s := newSubject(t, upstream(t, nil, func(http.ResponseWriter, *http.Request) { t.Error("nobody wants it") }))
	s.cfg.CachePath = noListing
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Nil(t, r.Cached)
}

// FuzzMetric: what is read is written the same, and takes what it names.
func FuzzMetric(f *testing.F) {
	f.Add(`vllm:num_requests_running{model_name="llama", engine="0",} * 0.5`)
	f.Add("a{b=\"\\u00e9\\\"\"}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetric(text)
		if err != nil || m.name == "" {
			return
		}
		again, err := parseMetric(m.id())
		require.NoError(t, err, "%q", m.id())
		again.scale = m.scale
		require.Equal(t, m, again)
	})
}
