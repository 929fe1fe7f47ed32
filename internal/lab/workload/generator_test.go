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

// small is an hour with few projects.
func small(seed uint64) Config { return Config{Seed: seed, Jobs: 20_000, Duration: hour, StartHour: 9} }

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
	for _, pattern := range []Pattern{Schedules, Steady, SingleBurst, OnOff} {
		cfg := Config{Seed: 7, Pattern: pattern, Jobs: 3000, Duration: 2 * hour}
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
		cfg := Config{
			Seed: rng.Uint64(), Pattern: []Pattern{Schedules, Schedules, Steady, SingleBurst, OnOff}[rng.IntN(5)],
			Jobs: 1 + rng.IntN(3000), Duration: 900 + 2*day*rng.Float64(), StartHour: rng.IntN(24),
			HighShare: []float64{1e-9, 0.05, 0.2, 0.5, 1}[rng.IntN(5)], Static: rng.IntN(2) == 0,
			Submitters: 1 + rng.IntN(50), Gap: 0.25, Pause: 5,
		}
		jobs := all(t, cfg)
		require.Len(t, jobs, cfg.Jobs, "%+v", cfg)
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
	g, err := New(Config{Jobs: 3, Duration: hour, Pattern: Steady})
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
	assert.Less(t, most, 2*len(g.Population().Projects))
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
		g, err := New(Config{Seed: 1})
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
