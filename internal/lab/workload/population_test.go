package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
)

func population(t *testing.T, cfg Config) []projectModel {
	t.Helper()
	g, err := New(cfg)
	require.NoError(t, err)
	return g.population
}

func TestProjectsAreLongTailed(t *testing.T) {
	projects := population(t, config(func(c *Config) { c.Seed = 2 }))
	require.Greater(t, len(projects), 5000)
	ids := map[trace.Project]bool{}
	periods := map[float64]int{}
	var sizes, channels, popularity, work []float64
	for _, p := range projects {
		require.False(t, ids[p.ID])
		ids[p.ID] = true
		periods[p.Period]++
		require.True(t, 0 <= p.Phase && p.Phase < p.Period)
		sizes = append(sizes, float64(p.Bytes))
		channels = append(channels, float64(len(p.Channels)))
		popularity = append(popularity, p.Popularity)
		work = append(work, p.work()/p.Period)
	}
	for period, share := range map[float64]float64{900: 0.08, 1800: 0.07, 3600: 0.30, 4 * hour: 0.20, 12 * hour: 0.10, day: 0.25} {
		assert.InDelta(t, share, float64(periods[period])/float64(len(projects)), 0.02, "every %v s", period)
	}
	assert.Len(t, periods, 6)
	assert.InDelta(t, 4e6, quantile(sizes, 0.5), 4e5)
	assert.Greater(t, quantile(sizes, 0.99)/quantile(sizes, 0.5), 50.0)
	assert.LessOrEqual(t, quantile(sizes, 1), 8e9)
	assert.Equal(t, 1.0, quantile(channels, 0))
	assert.True(t, 100 < quantile(channels, 1) && quantile(channels, 1) <= 400)
	for name, values := range map[string][]float64{"work": work, "popularity": popularity} {
		assert.Greater(t, topShare(values, 0.1), 0.5, "a tenth of the projects makes most of the %s", name)
	}
	assert.LessOrEqual(t, slices.Max(work), 4.0, "cores that one project keeps busy")
	assert.Greater(t, slices.Max(work), 1.0)
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

func topShare(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	top, sum := 0.0, 0.0
	for i, v := range sorted {
		sum += v
		if i >= len(sorted)-int(share*float64(len(sorted))) {
			top += v
		}
	}
	return top / sum
}

func TestBigProjectsHaveBigJobs(t *testing.T) {
	var size, load, work, channels []float64
	for _, p := range population(t, config(func(c *Config) { c.Seed = 3 })) {
		size = append(size, math.Log(float64(p.Bytes)))
		load = append(load, math.Log(p.Load+1e-6))
		work = append(work, math.Log(p.Channels[0].Operators))
		channels = append(channels, math.Log(float64(len(p.Channels))))
	}
	assert.Greater(t, correlation(size, load), 0.95)
	assert.InDelta(t, 2/2.5, correlation(size, work), 0.05)
	assert.InDelta(t, 0.3, correlation(size, channels), 0.08)
}

// TestOtherPopulations: big projects may be the popular ones, and the work may
// have a Pareto tail.
func TestOtherPopulations(t *testing.T) {
	var size, popularity, work []float64
	for _, p := range population(t, config(func(c *Config) {
		c.Seed, c.Population.PopularityBySize, c.Population.WorkTail = 3, 0.7, 1
	})) {
		size = append(size, math.Log(float64(p.Bytes)))
		popularity = append(popularity, math.Log(p.Popularity))
		if p.Bytes > 3e6 && p.Bytes < 5e6 {
			work = append(work, p.Channels[0].Operators)
		}
	}
	assert.InDelta(t, 0.7, correlation(size, popularity), 0.05)
	require.Greater(t, len(work), 500)
	assert.InEpsilon(t, 10*quantile(work, 0.5), quantile(work, 0.95), 0.35)
}

func correlation(a, b []float64) float64 {
	n := float64(len(a))
	var ma, mb, ab, aa, bb float64
	for i := range a {
		ma += a[i] / n
		mb += b[i] / n
	}
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	return ab / math.Sqrt(aa*bb)
}

func TestLimitSlowsDownBeforeItCutsChannels(t *testing.T) {
	channels := func(n int, work float64) []channelModel {
		return slices.Repeat([]channelModel{{Operators: work}}, n)
	}
	p := projectModel{Period: 900, Channels: channels(8, 900)}
	p.limit(2) // 7200 core-seconds: 8 cores each quarter of an hour, 2 each hour
	assert.Equal(t, hour, p.Period)
	assert.Len(t, p.Channels, 8)

	p = projectModel{Period: 1800, Channels: channels(100, day/10)}
	p.limit(2) // 10 cores even if once a day
	assert.Equal(t, day, p.Period)
	assert.Len(t, p.Channels, 12)

	p = projectModel{Period: 900, Channels: channels(1, 10*day)}
	p.limit(2)
	assert.Len(t, p.Channels, 1)
}

func TestTooManyProjectsAreRefused(t *testing.T) {
	_, err := New(config(func(c *Config) { c.Jobs, c.Duration, c.Population.MaxProjects = 1000, 1, 50 }))
	assert.EqualError(t, err, "workload: population.max_projects: 50 do not make 1000 jobs in 1 s: take a longer duration or fewer jobs")
}
