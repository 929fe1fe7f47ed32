package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
)

func withPrompts(change func(*Config)) Config {
	return config(func(c *Config) {
		c.Seed, c.Pattern, c.Jobs, c.Duration, c.Projects = 3, prompts, 20_000, 2*hour, 50
		c.HighShare = 0.5
		change(c)
	})
}

// TestSessionsGrow: each turn waits for the one before, and has more to read where
// the session is not known; turns of one session share what is kept of it.
func TestSessionsGrow(t *testing.T) {
	jobs := all(t, withPrompts(func(*Config) {}))
	last := map[string]trace.Job{}
	lines := map[string]trace.Line{}
	turns := map[string]int{}
	for i, job := range jobs {
		before, known := last[job.Shared]
		assert.Equal(t, lines[job.Shared], job.After)
		if known {
			said := before.Output*50/8000 + job.Operators // the last answer and this question, at 50 and 8,000 tokens a second
			assert.InDelta(t, before.SharedRules+said, job.SharedRules, 1e-5)
			assert.GreaterOrEqual(t, job.Offset, before.Offset)
			assert.Equal(t, []any{before.Project, before.Submitter, before.Priority}, []any{job.Project, job.Submitter, job.Priority})
		}
		require.Positive(t, job.Operators)
		require.Positive(t, job.Output)
		require.InDelta(t, job.Load, float64(job.Bytes)/(128<<10)/8000, 1e-4, "what is kept is what was read")
		last[job.Shared], lines[job.Shared] = job, trace.Line(i+1)
		turns[job.Shared]++
	}
	var sizes, load []float64
	for name, n := range turns {
		sizes = append(sizes, float64(n))
		load = append(load, last[name].Load)
	}
	assert.InDelta(t, 3.5, quantile(sizes, 0.5), 0.5, "a turn is whole")
	assert.Greater(t, quantile(load, 0.9), 2*quantile(load, 0.1))
}

// TestPromptsFollowZipf: many sessions share a system prompt.
func TestPromptsFollowZipf(t *testing.T) {
	n := map[trace.Project]float64{}
	for _, job := range all(t, withPrompts(func(c *Config) { c.Prompts.Zipf, c.Jobs = 1, 100_000 })) {
		n[job.Project]++
	}
	assert.Len(t, n, 50)
	assert.InEpsilon(t, 10, n["10001"]/n["10010"], 0.25)
}
