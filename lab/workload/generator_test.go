package workload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
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

// TestSameSeedSameBytes: equal seeds give equal bytes, from one version to the next. So a
// change of any draw is seen here, and says that results must be made anew.
func TestSameSeedSameBytes(t *testing.T) {
	for pattern, want := range map[Pattern]string{
		schedules: "bfb1a70c0b867be9", steady: "c8a47531f47497b1", sources: "5f8d0bcbfc5c9610",
	} {
		cfg := config(func(c *Config) {
			c.Seed = 7
			c.Pattern = pattern
			c.Jobs = 3000
			c.Duration = 2 * hour
			c.Crowds = []Crowd{{At: 60, For: 60, Jobs: 50, HighShare: 0.2}}
		})
		first := text(t, all(t, cfg))
		if runtime.GOARCH == "amd64" { // others round otherwise
			assert.Equal(t, want, fmt.Sprintf("%x", sha256.Sum256(first))[:16], "%s", pattern)
		}
		cfg.Seed = 8
		assert.NotEqual(t, first, text(t, all(t, cfg)), "%s", pattern)
	}
}

// TestEveryTraceIsValid draws configurations, and holds what is true of every
// trace: the exact number of jobs, in order of time, within the duration,
// readable by the strict reader, which checks times and the lines waited for.
func TestEveryTraceIsValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 8 {
		cfg := config(func(c *Config) {
			c.Seed = rng.Uint64()
			c.Pattern = []Pattern{schedules, schedules, steady, sources}[rng.IntN(4)]
			c.Jobs = 1 + rng.IntN(3000)
			c.Duration = 900 + 2*day*rng.Float64()
			c.StartHour = rng.IntN(24)
			c.HighShare = []float64{1e-9, 0.05, 0.2, 0.5, 1}[rng.IntN(5)]
			c.Static = rng.IntN(2) == 0
			c.Submitters = 1 + rng.IntN(50)
			for range rng.IntN(3) {
				c.Crowds = append(c.Crowds, Crowd{At: 100, For: 800, Jobs: 1 + rng.IntN(100), HighShare: rng.Float64()})
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
