package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// TestAFiringRunsEveryChannel looks at projects whose firings cannot overlap.
func TestAFiringRunsEveryChannel(t *testing.T) {
	cfg := config(func(c *Config) { c.Seed, c.Jobs = 5, 100_000 })
	g, err := New(cfg)
	require.NoError(t, err)
	slow := map[trace.Project]projectModel{}
	// The last project is cut to make the count exact.
	for _, p := range g.population[:len(g.population)-1] {
		if p.Period >= 4*hour {
			slow[p.ID] = p
		}
	}
	byProject := map[trace.Project][]trace.Job{}
	for _, job := range all(t, cfg) {
		if _, ok := slow[job.Project]; ok && job.Priority == selection.Low {
			byProject[job.Project] = append(byProject[job.Project], job)
		}
	}
	firings, wide := 0, 0
	for id, jobs := range byProject {
		channels := len(slow[id].Channels)
		require.Zero(t, len(jobs)%channels)
		for ; len(jobs) > 0; jobs = jobs[channels:] {
			firings++
			for i, job := range jobs[:channels] {
				require.Equal(t, int64(i+1), job.Channel)
				require.Equal(t, jobs[0].Version, job.Version, "one import for all channels")
			}
			span := jobs[channels-1].Offset - jobs[0].Offset
			require.LessOrEqual(t, span, 900.0)
			if span > 60 {
				wide++
			}
		}
	}
	require.Greater(t, firings, 300)
	assert.Greater(t, wide, firings/20, "some take minutes")
	assert.Less(t, wide, firings/2, "most take seconds")
}

func TestImportsRaiseTheVersion(t *testing.T) {
	cfg := config(func(c *Config) { c.Seed, c.Jobs = 5, 100_000 })
	last := map[trace.Project]int64{}
	sum := int64(0)
	for _, job := range all(t, cfg) {
		sum += job.Version - last[job.Project]
		last[job.Project] = job.Version
	}
	imports := sum - int64(len(last)) // less the first version of each
	g, err := New(cfg)
	require.NoError(t, err)
	want := 0.0
	for i := range g.population {
		p := &g.population[i]
		f := newFirings(&g.cfg, i, p)
		for {
			run, ok := f.next(&g.cfg)
			if !ok {
				break
			}
			if run.imports {
				want++
			}
			require.True(t, run.imports || p.Period < day, "a project that runs once a day imports each time")
		}
	}
	assert.InEpsilon(t, want, float64(imports), 0.01)
	assert.Greater(t, imports, int64(len(last)))
}

func TestSchedulesFollowTheHour(t *testing.T) {
	cfg := config(func(c *Config) { c.Seed, c.Jobs, c.StartHour = 1, 100_000, 6 })
	cfg.Schedule.Hours = Hours{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4}
	parts := [4]float64{}
	for _, job := range all(t, cfg) {
		if job.Priority == selection.Low {
			parts[int(job.Offset/(6*hour))]++
		}
	}
	// From 6 to 12 at full rate, then nothing but what fired just before noon, then a quarter.
	assert.InDelta(t, 4, parts[0]/parts[3], 1)
	assert.Less(t, parts[1]+parts[2], 0.03*parts[0])
}

// However much the jobs of a channel differ, none is longer than the longest.
func TestWorkIsBounded(t *testing.T) {
	longest := 0.0
	for _, job := range all(t, config(func(c *Config) {
		c.Jobs, c.HighShare, c.Schedule.JobSpread, c.Population.MaxWork = 20_000, 1e-9, 3, 20
	})) {
		longest = max(longest, job.Operators+job.Output)
	}
	assert.InDelta(t, 20, longest, 1e-5)
}

func TestFiringsAreAValue(t *testing.T) {
	cfg := Default()
	f := newFirings(&cfg, 3, &projectModel{Period: 900, Phase: 100})
	n := f.count(&cfg)
	assert.True(t, 60 < n && n < 96, "%d of 96", n)
	last := -1.0
	for range n {
		run, ok := f.next(&cfg)
		require.True(t, ok)
		require.Greater(t, run.at, last)
		last = run.at
	}
	_, ok := f.next(&cfg)
	assert.False(t, ok)
}
