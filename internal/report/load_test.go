package report

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// read is the metrics of sound names.
func read(names Names) metrics { return names.metrics(new(settings.Faults)) }

func readLoad(text string, names Names) (pool.Report, totals, error) {
	p, err := readPage(http.Header{}, strings.NewReader(text), maxMetricsLines)
	if err != nil {
		return pool.Report{}, totals{}, err
	}
	return loadOf(p, read(names))
}

func TestLoadReadsAGoodPage(t *testing.T) {
	r, totals, err := readLoad(goodPage, Default().Names)
	require.NoError(t, err)
	assert.Equal(t, pool.Report{
		Stalled:   byPriority(7, 2),
		Running:   byPriority(12, 3),
		Cores:     16,
		CoresBusy: 15,
		Completed: 1110,
		Failed:    10,
	}, r)
	assert.Equal(t, total{2040, 1100}, totals.wait)
	assert.Equal(t, total{9000, 1000}, totals.execution)
	assert.True(t, math.IsNaN(totals.response.count))
}

func TestLoadIsNothingWithoutItsGauges(t *testing.T) {
	const high = `ruleserver_stalled_joblets{priority="high"} 2`
	const low = `ruleserver_jobs_running{priority="low"} 12`
	for _, c := range []struct{ name, page, want string }{
		{"empty", "", "metric ruleserver_stalled_joblets is missing"},
		{"something else's", "# TYPE go_goroutines gauge\ngo_goroutines 42\n", "metric ruleserver_stalled_joblets is missing"},
		{"no running", "ruleserver_stalled_joblets 1\n", "metric ruleserver_jobs_running is missing"},
		{"declared only", "# TYPE ruleserver_stalled_joblets gauge\n", "metric ruleserver_stalled_joblets is missing"},
		{"NaN", change(t, high, `ruleserver_stalled_joblets{priority="high"} NaN`), "metric ruleserver_stalled_joblets is NaN, not between 0 and 1e+12"},
		{"negative", change(t, low, `ruleserver_jobs_running{priority="low"} -1`), "metric ruleserver_jobs_running is -1, not between 0 and 1e+12"},
		{"infinite", change(t, low, `ruleserver_jobs_running{priority="low"} +Inf`), "metric ruleserver_jobs_running is +Inf, not between 0 and 1e+12"},
		{"absurd", change(t, low, `ruleserver_jobs_running{priority="low"} 1e300`), "metric ruleserver_jobs_running is 1e+300, not between 0 and 1e+12"},
		{"a summary", "# TYPE ruleserver_stalled_joblets summary\nruleserver_stalled_joblets_sum 1\n", "metric ruleserver_stalled_joblets is a summary, not a number"},
		{"a word", change(t, high, `ruleserver_stalled_joblets{priority="high"} many`), `text format parsing error in line 3: expected float as value, got "many"`},
		{"no value", change(t, high, `ruleserver_stalled_joblets{priority="high"}`), `text format parsing error in line 3: expected float as value, got ""`},
		{"HTML", "<!DOCTYPE html>\n<html></html>\n", "text format parsing error in line 1: invalid metric name"},
		{"JSON", `{"projects":[]}`, "text format parsing error in line 1: unexpected end of metric name ':'"},
		{"bytes", "\x00\xff\x1b[2J\n", "text format parsing error in line 1: invalid metric name"},
		{"no end of line", "ruleserver_stalled_joblets 1", "text format parsing error in line 1: unexpected end of input stream"},
		{"too many lines", strings.Repeat("#\n", 50_001), "longer than 50000 lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readLoad(c.page, Default().Names)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestLoadLeavesOpenWhatItCannotBelieve(t *testing.T) {
	for _, c := range []struct {
		name, line, by string
		differs        func(*pool.Report)
	}{
		{"no cores", "ruleserver_cores 16", "", func(r *pool.Report) { r.Cores = 0 }},
		{"negative cores", "ruleserver_cores 16", "ruleserver_cores -1", func(r *pool.Report) { r.Cores = 0 }},
		{"cores NaN", "ruleserver_cores 16", "ruleserver_cores NaN", func(r *pool.Report) { r.Cores = 0 }},
		{"absurd cores", "ruleserver_cores 16", "ruleserver_cores 1e10", func(r *pool.Report) { r.Cores = 0 }},
		{"a share of a core", "ruleserver_cores 16", "ruleserver_cores 0.5", func(r *pool.Report) { r.Cores = 1 }},
		{"busy NaN", "ruleserver_cores_busy 15", "ruleserver_cores_busy NaN", func(r *pool.Report) { r.CoresBusy = -1 }},
		{"no busy", "ruleserver_cores_busy 15", "", func(r *pool.Report) { r.CoresBusy = -1 }},
		{"none busy", "ruleserver_cores_busy 15", "ruleserver_cores_busy 0", func(r *pool.Report) { r.CoresBusy = 0 }},
		{
			"completed infinite", `ruleserver_jobs_completed_total{priority="low",outcome="failed"} 10`,
			`ruleserver_jobs_completed_total{priority="low",outcome="failed"} Inf`, func(r *pool.Report) { r.Completed, r.Failed = -1, -1 },
		},
		{
			"one priority only", `ruleserver_stalled_joblets{priority="high"} 2`, "",
			func(r *pool.Report) { r.Stalled = byPriority(7, 0) },
		},
		{
			"an unheard-of priority", `ruleserver_stalled_joblets{priority="high"} 2`, `ruleserver_stalled_joblets{priority="urgent"} 2`,
			func(r *pool.Report) { r.Stalled = byPriority(9, 0) },
		},
		{
			"no priority", `ruleserver_stalled_joblets{priority="high"} 2`, `ruleserver_stalled_joblets 2`,
			func(r *pool.Report) { r.Stalled = byPriority(9, 0) },
		},
		{
			"other labels", `ruleserver_stalled_joblets{priority="high"} 2`,
			`ruleserver_stalled_joblets{kind="operators",priority="high"} 2` + "\n" + `ruleserver_stalled_joblets{priority="high",kind="feed_source"} 3.5`,
			func(r *pool.Report) { r.Stalled = byPriority(7, 5.5) },
		},
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
	names.Stalled, names.Running, names.Wait, names.Response = "scheduler_stalled_promises", "jobs.active", "wait", "answer"
	r, totals, err := readLoad(`scheduler_stalled_promises 100
# TYPE "jobs.active" counter
{"jobs.active",priority="high"} 4
# TYPE wait summary
wait{quantile="0.5"} 1
wait_sum 12
wait_count 6
# TYPE answer untyped
answer 3
`, names)
	require.NoError(t, err)
	assert.Equal(t, pool.Report{Stalled: byPriority(100, 0), Running: byPriority(0, 4), CoresBusy: -1, Completed: -1, Failed: -1}, r)
	assert.Equal(t, total{12, 6}, totals.wait)
	assert.True(t, math.IsNaN(totals.response.count), "neither histogram nor summary")
}

func TestMeanIsOfTheDifference(t *testing.T) {
	inf := math.Inf(1)
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
		{"an infinite sum", total{1, 2}, total{inf, 3}, nan},
		{"an infinite count", total{1, 2}, total{3, inf}, nan},
		{"infinite twice", total{inf, 2}, total{inf, 3}, nan},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.now.mean(c.before)
			if math.IsNaN(c.want) {
				assert.True(t, math.IsNaN(got), "%v", got)
				return
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestResponseIsWaitAndExecutionWhereItIsNotTold(t *testing.T) {
	before := totals{wait: total{0, 0}, execution: total{0, 0}, response: unknown}
	now := totals{wait: total{4, 2}, execution: total{9, 3}, response: unknown}
	wait, response := now.since(before)
	assert.Equal(t, 2.0, wait)
	assert.Equal(t, 5.0, response)

	before.response, now.response = total{0, 0}, total{28, 4}
	_, response = now.since(before)
	assert.Equal(t, 7.0, response)
}
