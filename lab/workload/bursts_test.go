package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// The two loads of Turner's thesis: one burst with a second between its jobs, and bursts with pauses.
func TestBursts(t *testing.T) {
	sent := func(b Bursts, jobs int) (at []float64) {
		for _, job := range all(t, config(func(c *Config) { c.Pattern, c.Bursts, c.Jobs = bursts, b, jobs })) {
			at = append(at, job.Offset)
		}
		return at
	}
	assert.Equal(t, []float64{0, 1, 2, 3, 4}, sent(Bursts{Size: 5, Gap: 1}, 5))
	assert.Equal(t, []float64{0, 0, 30, 30, 60}, sent(Bursts{Size: 2, Every: 30}, 5))
	job := all(t, config(func(c *Config) { c.Pattern, c.Bursts, c.Jobs = bursts, Bursts{Size: 1, Work: 50, Queue: 80}, 1 }))[0]
	assert.InDeltaSlice(t, []float64{0, 0, 5, 45, 80}, []float64{job.Load, job.SharedRules, job.Operators, job.Output, job.Timeouts.Queue}, 1e-9)
	assert.Equal(t, []float64{0, 2, 45, 47}, sent(Bursts{Size: 2, Every: 45, Gap: 2}, 4))
}

// Half of the jobs are for one of two projects, and every 100 s for two others.
func TestHotProjectsChange(t *testing.T) {
	jobs := all(t, config(func(c *Config) {
		c.Pattern, c.Jobs, c.Duration, c.Projects, c.Hot = steady, 4000, 200, 100_000, Hot{Projects: 2, Share: 0.5, Every: 100}
	}))
	counts := [2]map[trace.Project]int{{}, {}}
	for _, job := range jobs {
		counts[int(job.Offset/100)][job.Project]++
	}
	for i := range counts {
		hot := 0
		for project, n := range counts[i] {
			if n > 200 {
				hot++
				require.Less(t, counts[1-i][project], 50, "it was hot before")
				assert.InDelta(t, 500, n, 100)
			}
		}
		assert.Equal(t, 2, hot)
	}
}
