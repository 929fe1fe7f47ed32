package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/pkg/selection"
)

// TestTheThesissDay holds the default workload against what is known of the
// day that the thesis captured. Its production rows, duration less wait, are what an
// execution takes there: some jobs find their data cached, and cores are
// contended. So the work of jobs whose data is cached must lie somewhat
// below those rows, and the whole work above. In seconds:
//
//	high: mean 2.57, median 0.27, p90 3.5, p95 12, p99 45, max 430
//	low:  mean 4.75, median 0.26, p90 8-10, p95 25-32, p99 100-168
func TestTheThesissDay(t *testing.T) {
	type bands struct{ mean, median, p90, p95, p99 [2]float64 }
	cached := [selection.Priorities]bands{
		selection.Low:  {mean: [2]float64{1.9, 4.2}, median: [2]float64{0.10, 0.26}, p90: [2]float64{2.7, 6}, p95: [2]float64{7, 15}, p99: [2]float64{35, 80}},
		selection.High: {mean: [2]float64{1.8, 2.7}, median: [2]float64{0.15, 0.27}, p90: [2]float64{2.6, 4}, p95: [2]float64{6, 12}, p99: [2]float64{28, 50}},
	}
	whole := [selection.Priorities]bands{
		selection.Low:  {mean: [2]float64{4, 9}, median: [2]float64{0.3, 0.9}, p90: [2]float64{7, 14}, p95: [2]float64{16, 34}, p99: [2]float64{60, 170}},
		selection.High: {mean: [2]float64{3, 6}, median: [2]float64{0.3, 0.7}, p90: [2]float64{5, 9}, p95: [2]float64{11, 20}, p99: [2]float64{45, 90}},
	}
	check := func(what string, d *stats.Distribution, b bands) {
		s := d.Summary()
		t.Logf("%s: %+v", what, s)
		for _, c := range []struct {
			name string
			got  float64
			band [2]float64
		}{{"mean", s.Mean, b.mean}, {"median", s.Median, b.median}, {"p90", s.P90, b.p90}, {"p95", s.P95, b.p95}, {"p99", s.P99, b.p99}} {
			assert.True(t, c.band[0] <= c.got && c.got <= c.band[1], "%s: %s %.3g is not in %v", what, c.name, c.got, c.band)
		}
	}
	g, err := New(config(func(c *Config) { c.Seed = 1 }))
	require.NoError(t, err)
	var jobs, prefetches, chained [selection.Priorities]int
	var warm, cold [selection.Priorities]*stats.Distribution
	for p := range warm {
		warm[p], cold[p] = stats.NewDistribution(), stats.NewDistribution()
	}
	for job := range g.Jobs {
		p := job.Priority
		jobs[p]++
		if job.Prefetch {
			prefetches[p]++
			continue
		}
		if job.After > 0 {
			chained[p]++
		}
		warm[p].Add(job.Operators + job.Output)
		cold[p].Add(job.Work())
	}
	low, high := jobs[selection.Low], jobs[selection.High]
	assert.Equal(t, 2_879_676, low+high)
	assert.InDelta(t, 0.2, float64(high)/float64(low+high), 0.0002)
	assert.Zero(t, prefetches[selection.Low])
	assert.InDelta(t, 0.15, float64(chained[selection.High])/float64(high-prefetches[selection.High]), 0.01)
	assert.Less(t, warm[selection.High].Summary().Max, 430.001)
	assert.Less(t, warm[selection.Low].Summary().Max, 1800.001)
	for _, p := range []selection.Priority{selection.High, selection.Low} {
		check(p.String()+" with cached data", warm[p], cached[p])
		check(p.String()+" as a whole", cold[p], whole[p])
	}
	// 14 upstreams of 16 cores have 224: busy, but not full.
	sum := func(d *stats.Distribution) float64 { return d.Summary().Mean * float64(d.Summary().Count) }
	cores := (sum(warm[selection.Low]) + sum(warm[selection.High])) / day
	assert.True(t, 60 < cores && cores < 130, "%v cores busy", cores)
}
