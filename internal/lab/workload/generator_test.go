package workload

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// config is the default with a change.
func config(change func(*Config)) Config {
	c := Default()
	change(&c)
	return c
}

// small is an hour with few projects.
func small(seed uint64) Config {
	return config(func(c *Config) {
		c.Seed = seed
		c.Jobs = 20_000
		c.Duration = hour
		c.StartHour = 9
	})
}

func all(t *testing.T, cfg Config) []trace.Job {
	t.Helper()
	g, err := New(cfg)
	require.NoError(t, err)
	var jobs []trace.Job
	for {
		job, err := g.Next()
		if errors.Is(err, io.EOF) {
			return jobs
		}
		require.NoError(t, err)
		jobs = append(jobs, job)
	}
}

func text(t *testing.T, jobs []trace.Job) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	for i := range jobs {
		require.NoError(t, w.Write(&jobs[i]))
	}
	require.NoError(t, w.Flush())
	return out.Bytes()
}

func TestSameSeedSameBytes(t *testing.T) {
	for _, pattern := range []Pattern{schedules, steady, singleBurst, onOff, sources, prompts} {
		cfg := config(func(c *Config) {
			c.Seed = 7
			c.Pattern = pattern
			c.Jobs = 3000
			c.Duration = 2 * hour
		})
		first := text(t, all(t, cfg))
		assert.True(t, bytes.Equal(first, text(t, all(t, cfg))), "%s", pattern)
		cfg.Seed = 8
		assert.False(t, bytes.Equal(first, text(t, all(t, cfg))), "%s", pattern)
	}
}

// TestEveryTraceIsValid draws configurations, and holds what is true of every
// trace: the exact number of jobs, in order of time, within the duration,
// readable by the strict reader, which checks times and the lines waited for.
func TestEveryTraceIsValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 20 {
		cfg := config(func(c *Config) {
			c.Seed = rng.Uint64()
			c.Pattern = []Pattern{schedules, schedules, steady, singleBurst, onOff, sources}[rng.IntN(6)]
			c.Jobs = 1 + rng.IntN(3000)
			c.Duration = 900 + 2*day*rng.Float64()
			c.StartHour = rng.IntN(24)
			c.HighShare = []float64{1e-9, 0.05, 0.2, 0.5, 1}[rng.IntN(5)]
			c.Static = rng.IntN(2) == 0
			c.Submitters = 1 + rng.IntN(50)
			c.Gap = 0.25
			c.Pause = 5
			for range rng.IntN(3) {
				c.Crowds = append(c.Crowds, Crowd{At: 100, For: 800, Jobs: 1 + rng.IntN(100), HighShare: rng.Float64(), Bytes: float64(rng.IntN(2)) * 1e9})
			}
		})
		jobs := all(t, cfg)
		require.Len(t, jobs, cfg.Len(), "%+v", cfg)
		r := trace.NewReader(bytes.NewReader(text(t, jobs)), "")
		versions := map[trace.Project]int64{}
		for i := range jobs {
			job, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, jobs[i], job, "what is in memory is what a file holds")
			require.LessOrEqual(t, job.Offset, cfg.Duration)
			require.True(t, 1 <= job.Submitter && job.Submitter <= int64(cfg.Submitters))
			require.NotZero(t, job.Bytes)
			require.NotEmpty(t, job.Project)
			require.GreaterOrEqual(t, job.Version, max(1, versions[job.Project]))
			if cfg.Static {
				require.Equal(t, int64(1), job.Version)
			}
			versions[job.Project] = job.Version
			if job.After > 0 {
				before := jobs[job.After-1]
				require.Equal(t, selection.High, job.Priority)
				require.Equal(t, selection.High, before.Priority)
				require.Equal(t, trace.Process, before.Kind)
				require.Equal(t, job.Project, before.Project)
			}
		}
		_, err := r.Next()
		require.Equal(t, io.EOF, err)
	}
}

func TestGeneratorEnds(t *testing.T) {
	g, err := New(config(func(c *Config) { c.Jobs, c.Duration, c.Pattern = 3, hour, steady }))
	require.NoError(t, err)
	assert.Equal(t, 3, g.Len())
	for range 3 {
		_, err := g.Next()
		require.NoError(t, err)
	}
	for range 2 {
		_, err = g.Next()
		assert.Equal(t, io.EOF, err)
	}
}

// TestMemoryFollowsThePopulation counts the processes under way at any time.
func TestMemoryFollowsThePopulation(t *testing.T) {
	cfg := small(1)
	cfg.Jobs, cfg.Duration = 200_000, day
	g, err := New(cfg)
	require.NoError(t, err)
	most := 0
	for {
		if _, err := g.Next(); errors.Is(err, io.EOF) {
			break
		}
		most = max(most, len(g.queue.events))
	}
	assert.Less(t, most, 2*len(g.population))
}

func TestJobsOfOneProjectShare(t *testing.T) {
	jobs := all(t, small(3))
	type key struct {
		project trace.Project
		shared  string
	}
	sets := map[key]float64{}
	loads := map[trace.Project]trace.Job{}
	withRules := 0
	for _, job := range jobs {
		if first, ok := loads[job.Project]; ok {
			require.Equal(t, first.Load, job.Load)
			require.Equal(t, first.Bytes, job.Bytes)
		}
		loads[job.Project] = job
		if job.Kind == trace.Prefetch {
			require.Zero(t, job.Work()-job.Load)
			require.Zero(t, job.Channel)
			continue
		}
		require.Positive(t, job.Channel)
		require.Positive(t, job.Operators)
		require.Positive(t, job.Output)
		if job.Shared == "" {
			require.Zero(t, job.SharedRules)
			continue
		}
		withRules++
		k := key{job.Project, job.Shared}
		if work, ok := sets[k]; ok {
			require.Equal(t, work, job.SharedRules)
		}
		sets[k] = job.SharedRules
	}
	assert.Greater(t, withRules, len(jobs)/2)
	assert.Greater(t, withRules, 5*len(sets), "many channels share a set")
}

func TestTimeoutsByPriority(t *testing.T) {
	cfg := small(1)
	cfg.LowTimeouts = trace.Timeouts{Queue: 7}
	for _, job := range all(t, cfg) {
		if job.Priority == selection.Low {
			require.Equal(t, trace.Timeouts{Queue: 7}, job.Timeouts)
		} else {
			require.Equal(t, trace.Timeouts{Queue: 60, Evaluate: 600, Stream: 600}, job.Timeouts)
		}
	}
}

func BenchmarkThesisDay(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		g, err := New(config(func(c *Config) { c.Seed = 1 }))
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := g.Next(); errors.Is(err, io.EOF) {
				break
			}
		}
	}
}
