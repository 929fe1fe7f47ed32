package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

func TestSessionsFollowTheHour(t *testing.T) {
	hours := [24]float64{}
	cfg := config(func(c *Config) { c.Seed, c.Jobs, c.HighShare = 1, 200_000, 1 })
	for _, job := range all(t, cfg) {
		hours[int(job.Offset/hour)]++
	}
	weights := officeHours()
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i, n := range hours {
		want := 200_000 * weights[i] / sum
		assert.InDelta(t, want, n, 0.12*want+400, "hour %d", i)
	}
}

// TestASessionOpensThenWorks follows the only person at work on each of many projects.
func TestASessionOpensThenWorks(t *testing.T) {
	cfg := config(func(c *Config) {
		c.Seed = 1
		c.Jobs = 20_000
		c.Duration = 30 * day
		c.HighShare = 0.1
	})
	cfg.Session.Think = 10
	last := map[trace.Project]trace.Job{}
	followed, thinking := 0, 0
	for _, job := range all(t, cfg) {
		if job.Priority == selection.Low {
			continue
		}
		before, known := last[job.Project]
		last[job.Project] = job
		switch {
		case !known:
			require.Equal(t, trace.Prefetch, job.Kind, "a person opens a project first")
		case job.After > 0:
			require.InDelta(t, 0.2, job.Offset-before.Offset, 1e-5)
		case job.Kind == trace.Process:
			followed++
			require.False(t, before.Kind == trace.Prefetch && math.Abs(job.Offset-before.Offset-0.2) < 1e-5, "nobody chains a job to a prefetch")
			if gap := job.Offset - before.Offset; gap > 2 && gap < 50 {
				thinking++
			}
		}
	}
	require.Greater(t, followed, 500)
	assert.Greater(t, float64(thinking)/float64(followed), 0.85)
}

// A session is a prefetch and the jobs that follow it.
func TestTheSizeOfASession(t *testing.T) {
	prefetches := 0
	for _, job := range all(t, config(func(c *Config) {
		c.Jobs, c.HighShare, c.Session.Jobs, c.Session.JobsSpread = 600, 1, 5, 0
	})) {
		if job.Kind == trace.Prefetch {
			prefetches++
		}
	}
	assert.Equal(t, 100, prefetches)
}

func TestALateSessionIsHurried(t *testing.T) {
	cfg := config(func(c *Config) {
		c.Seed = 3
		c.Jobs = 500
		c.Duration = 30
		c.HighShare = 1
	})
	jobs := all(t, cfg)
	require.Len(t, jobs, 500)
	assert.Less(t, jobs[499].Offset, 30.0)
}
