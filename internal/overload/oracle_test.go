package overload

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The oracles recompute a detector's level from the whole history of samples,
// with a limit of 100, every time.
func oracles() map[string]func(history []Sample) Level {
	return map[string]func([]Sample) Level{
		"none":      func([]Sample) Level { return 1 },
		"threshold": thresholdOracle,
		"dagor":     dagorOracle,
	}
}

// thresholdOracle looks back for the last sample that leaves no doubt.
func thresholdOracle(history []Sample) Level {
	for i := len(history) - 1; i >= 0; i-- {
		switch {
		case history[i].Stalled > 100:
			return 0
		case history[i].Stalled < 80:
			return 1
		}
	}
	return 1
}

func dagorOracle(history []Sample) Level {
	level := 1.0
	for _, s := range history {
		overloaded := s.Wait > 10
		if s.Wait != s.Wait {
			overloaded = s.Stalled > 100
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
			build, err := New(name, 100)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range 200 {
				detector, history := build(), []Sample(nil)
				for range 150 {
					sample := randomSample(rng)
					if n%4 == 0 {
						sample.Wait = 11 // overload that lasts
					}
					history = append(history, sample)
					got := detector.Observe(history[len(history)-1])
					require.InDelta(t, float64(oracles()[name](history)), float64(got), 1e-9, "after %v", history)
				}
			}
		})
	}
}

// randomSample makes quiet and loud samples, some just at the limits, some
// without a wait.
func randomSample(rng *rand.Rand) Sample {
	of := func(values ...float64) float64 { return values[rng.IntN(len(values))] }
	return Sample{
		Stalled: of(math.NaN(), 0, 79.9, 80, 90, 100, 100.1, 105, 160, 390, 1000, 1e9),
		Wait:    of(math.NaN(), 0, 9.9, 10, 10.1, 1e6),
	}
}
