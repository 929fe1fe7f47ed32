package workload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

func TestSteadyIsUniform(t *testing.T) {
	tenths := [10]int{}
	high := 0
	for _, job := range all(t, config(func(c *Config) {
		c.Pattern = steady
		c.Jobs = 20_000
		c.Duration = 1000
		c.HighShare = 0.3
	})) {
		tenths[int(job.Offset/100)]++
		if job.Priority == selection.High {
			high++
		}
	}
	for i, n := range tenths {
		assert.InDelta(t, 2000, n, 200, "tenth %d", i) // some 4.7 standard deviations
	}
	assert.InDelta(t, 6000, high, 300)
}

func TestSingleBurstIsEvenlySpaced(t *testing.T) {
	jobs := all(t, config(func(c *Config) {
		c.Pattern = singleBurst
		c.Jobs = 128
		c.Duration = 200
		c.Gap = 1.5
	}))
	for i, job := range jobs {
		assert.Equal(t, float64(i)*1.5, job.Offset)
	}
}

func TestOnOffSendsBurstsAtOnce(t *testing.T) {
	jobs := all(t, config(func(c *Config) {
		c.Pattern = onOff
		c.Jobs = 50
		c.Duration = 100
		c.BurstJobs = 20
		c.Pause = 45
	}))
	var times []float64
	for _, job := range jobs {
		times = append(times, job.Offset)
	}
	want := slices.Concat(slices.Repeat([]float64{0}, 20), slices.Repeat([]float64{45}, 20), slices.Repeat([]float64{90}, 10))
	assert.Equal(t, want, times)
}

func TestSinglesFavourBusyProjects(t *testing.T) {
	cfg := config(func(c *Config) {
		c.Pattern = steady
		c.Jobs = 50_000
		c.HighShare = 1e-9
		c.Projects = 200
	})
	g, err := New(cfg)
	require.NoError(t, err)
	rates, sum := map[trace.Project]float64{}, 0.0
	for _, p := range g.population {
		rates[p.ID] = float64(len(p.Channels)) / p.Period
		sum += rates[p.ID]
	}
	counts := map[trace.Project]float64{}
	for _, job := range all(t, cfg) {
		counts[job.Project]++
	}
	for id, rate := range rates {
		want := 50_000 * rate / sum
		assert.InDelta(t, want, counts[id], 5+0.05*want+3*want/10, "%s", id)
	}
}
