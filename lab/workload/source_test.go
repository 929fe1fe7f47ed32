package workload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/lab/trace"
)

func fromSources(change func(*Config)) Config {
	return config(func(c *Config) {
		c.Seed, c.Pattern, c.Jobs, c.Duration, c.Projects = 3, sources, 50_000, 2*hour, 800
		change(c)
	})
}

// counts are the jobs of each minute.
func counts(jobs []trace.Job, minutes int) []float64 {
	n := make([]float64, minutes)
	for _, job := range jobs {
		n[min(int(job.Offset/60), minutes-1)]++
	}
	return n
}

func variance(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean) / float64(len(values))
	}
	return sum
}

// TestSourcesAreBursty: the jobs of a minute vary far more than those of a
// Poisson process, whose variance is the mean, and still do over ten minutes.
func TestSourcesAreBursty(t *testing.T) {
	jobs := all(t, fromSources(func(*Config) {}))
	minutes := counts(jobs, 120)
	mean := 50_000.0 / 120
	assert.Greater(t, variance(minutes), 5*mean)
	var tens []float64
	for ten := range slices.Chunk(minutes, 10) {
		sum := 0.0
		for _, n := range ten {
			sum += n
		}
		tens = append(tens, sum)
	}
	assert.Greater(t, variance(tens), 10*10*mean)
}
