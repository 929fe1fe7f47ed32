package overload

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

func job(project uint64, priority selection.Priority) selection.Job {
	return selection.Job{Project: project, Priority: priority, Hour: 490000}
}

// admitted returns the share of a thousand projects' jobs that a level admits.
func admitted(level Level, priority selection.Priority) float64 {
	n := 0.0
	for project := uint64(1); project <= 1000; project++ {
		if level.Admits(job(project, priority)) {
			n++
		}
	}
	return n / 1000
}

// TestLevelRefusesLowJobsFirst: from level 1 to 0.5 only low jobs are refused, in proportion;
// below it high jobs, too.
func TestLevelRefusesLowJobsFirst(t *testing.T) {
	for _, c := range []struct {
		level     Level
		high, low float64
	}{
		{1, 1, 1}, {0.9, 1, 0.8}, {0.75, 1, 0.5}, {0.5, 1, 0}, {0.25, 0.5, 0}, {0.02, 0.04, 0}, {0, 0, 0},
	} {
		assert.InDelta(t, c.high, admitted(c.level, selection.High), 0.04, "high at %v", c.level)
		assert.InDelta(t, c.low, admitted(c.level, selection.Low), 0.04, "low at %v", c.level)
	}
}

func TestRankIsInRangeAndStable(t *testing.T) {
	for project := uint64(0); project < 2000; project++ {
		low, high := Rank(job(project, selection.Low)), Rank(job(project, selection.High))
		require.True(t, high >= 0 && high < 0.5 && low >= 0.5 && low < 1, "%v, %v", high, low)
		require.Equal(t, low, Rank(job(project, selection.Low)))
		require.InDelta(t, 0.5, low-high, 1e-12, "the same order within both priorities")
	}
}

// TestRankChangesByTheHour checks that other projects rank first in the next hour.
func TestRankChangesByTheHour(t *testing.T) {
	both := 0
	for project := uint64(1); project <= 1000; project++ {
		now, next := job(project, selection.Low), job(project, selection.Low)
		next.Hour++
		if Level(0.75).Admits(now) && Level(0.75).Admits(next) {
			both++
		}
	}
	assert.InDelta(t, 250, both, 45)
}

func TestDetectorsOfSettings(t *testing.T) {
	_, err := Settings{Policy: "breaker", Stalled: 1, Reset: 1}.Detector()
	assert.EqualError(t, err, `overload.policy: "breaker" is not one of none, threshold, dagor`)
	for _, name := range Names() {
		_, err := Settings{Policy: name, Stalled: 0.5, Reset: 1}.Detector()
		assert.NoError(t, err, "a limit may be a share of a joblet: %s", name)
	}
}

// TestDagorUsesReportedWaits checks that dagor uses stalled joblets only if the wait is not reported.
func TestDagorUsesReportedWaits(t *testing.T) {
	for _, c := range []struct {
		sample Sample
		want   Level
	}{
		{Sample{Stalled: 1e3, Wait: 9}, 1},
		{Sample{Stalled: 0, Wait: 11}, 0.95},
		{Sample{Stalled: 101, Wait: math.NaN()}, 0.95},
	} {
		assert.Equal(t, c.want, dagor(Default())(c.sample), "%+v", c)
	}
}

// The oracles compute a detector's level from the complete history of samples.
func oracles() map[string]func(s Settings, history []Sample) Level {
	return map[string]func(Settings, []Sample) Level{
		"none":      func(Settings, []Sample) Level { return 1 },
		"threshold": thresholdOracle,
		"dagor":     dagorOracle,
	}
}

// thresholdOracle finds the last sample that decides. Without hysteresis every number of stalled
// joblets decides.
func thresholdOracle(s Settings, history []Sample) Level {
	for i := len(history) - 1; i >= 0; i-- {
		switch stalled := history[i].Stalled; {
		case stalled > s.Stalled:
			return 0
		case s.Reset == 1 && !math.IsNaN(stalled), stalled < s.Reset*s.Stalled:
			return 1
		}
	}
	return 1
}

func dagorOracle(settings Settings, history []Sample) Level {
	level := 1.0
	for _, s := range history {
		overloaded := s.Wait > settings.Wait.Seconds()
		if s.Wait != s.Wait || settings.Wait == 0 {
			overloaded = s.Stalled > settings.Stalled
		}
		if overloaded {
			level = level - level*5/100
		} else {
			level = level + 1.0/100
		}
		level = math.Max(0.02, math.Min(1, level))
	}
	return Level(level)
}

func TestDetectorsAreTheOracles(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range 200 {
				s := Default()
				s.Policy = name
				if n%2 == 0 { // as in the thesis
					s.Reset, s.Wait = 1, 0
				}
				build, err := s.Detector()
				require.NoError(t, err)
				detector, history := build(), []Sample(nil)
				for range 150 {
					sample := randomSample(rng)
					if n%4 < 2 {
						sample.Wait = 11 // a longer overload
					}
					history = append(history, sample)
					got := detector(sample)
					require.InDelta(t, float64(oracles()[name](s, history)), float64(got), 1e-9, "after %v", history)
				}
			}
		})
	}
}

// randomSample returns low and high samples, some just at the limits, some without a wait.
func randomSample(rng *rand.Rand) Sample {
	of := func(values ...float64) float64 { return values[rng.IntN(len(values))] }
	return Sample{
		Stalled: of(math.NaN(), 0, 79.9, 80, 90, 100, 100.1, 105, 160, 390, 1000, 1e9),
		Wait:    of(math.NaN(), 0, 9.9, 10, 10.1, 1e6),
	}
}
