package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
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

// TestASourceIsOnOrOff: a project sends at its own rate for a while, and then
// nothing for a while.
func TestASourceIsOnOrOff(t *testing.T) {
	cfg := fromSources(func(c *Config) { c.Projects, c.Jobs, c.Duration = 40, 200_000, day })
	first := trace.Project("10001")
	last, gaps, busy := 0.0, 0, 0
	for _, job := range all(t, cfg) {
		if job.Project != first {
			continue
		}
		if job.Offset-last > 30 {
			gaps++
		}
		busy++
		last = job.Offset
	}
	assert.Greater(t, busy, 1000)
	assert.Greater(t, gaps, 50, "times of half a minute and more without a job")
}

// TestNewDataComesWhenASourceGoesOn: those that are on from the start have their first data.
func TestNewDataComesWhenASourceGoesOn(t *testing.T) {
	first := map[trace.Project]int64{}
	for _, job := range all(t, fromSources(func(c *Config) { c.Schedule.Imports = 1 })) {
		if first[job.Project] == 0 {
			first[job.Project] = job.Version
		}
	}
	versions := map[int64]int{}
	for _, v := range first {
		versions[v]++
	}
	assert.Greater(t, versions[1], len(first)/20, "those that were on from the start")
	assert.Greater(t, versions[2], len(first)/2)
}

// TestSourcesFollowZipf: over many short periods, a project's jobs follow its rank.
func TestSourcesFollowZipf(t *testing.T) {
	cfg := fromSources(func(c *Config) {
		c.Projects, c.Jobs, c.Duration = 50, 200_000, day
		c.Sources.On, c.Sources.Off, c.Sources.Index, c.Sources.Zipf = 5, 5, 5, 1
	})
	n := map[trace.Project]float64{}
	for _, job := range all(t, cfg) {
		n[job.Project]++
	}
	assert.InEpsilon(t, 10, n["10001"]/n["10010"], 0.15)
	assert.InEpsilon(t, 40, n["10001"]/n["10040"], 0.15)
}

// TestSourcesWork: the work has the median and the tail that are asked for,
// whatever the project's size.
func TestSourcesWork(t *testing.T) {
	cfg := fromSources(func(c *Config) { c.Sources.Work, c.Sources.WorkIndex = 0.4, 1.2 })
	var work, small, large []float64
	for _, job := range all(t, cfg) {
		w := job.Operators + job.Output
		work = append(work, w)
		require.Positive(t, job.Bytes)
		if job.Bytes < 6e6 {
			small = append(small, w)
		} else if job.Bytes > 2e7 {
			large = append(large, w)
		}
	}
	assert.InEpsilon(t, 0.4, quantile(work, 0.5), 0.03)
	assert.InEpsilon(t, 0.4*math.Pow(50, 1/1.2), quantile(work, 0.99), 0.1)
	assert.InEpsilon(t, quantile(small, 0.5), quantile(large, 0.5), 0.05)
}
