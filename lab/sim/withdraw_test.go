package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Jobs wait less if upstreams withdraw waiting jobs for idle ones. Each job ends once, also if an upstream hangs, if
// upstreams restart, and if people give up.
func TestWithdrawnJobs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var jobs []trace.Job
	for at := 0.0; len(jobs) < 3000; at += 0.4 * rng.ExpFloat64() {
		project := string(rune('a' + int(30*rng.Float64()*rng.Float64())))
		jobs = append(jobs, trace.Job{
			Offset: at, Project: trace.Project(project), Submitter: int64(len(jobs) % 3), Priority: selection.Priority(len(jobs) % 5 / 4),
			Load: 1, Operators: 4 * rng.ExpFloat64(), Bytes: 1,
		})
	}
	for name, c := range map[string]struct {
		change func(*Config)
		whole  bool // all jobs have ended
	}{
		"all is well": {func(*Config) {}, true},
		"one hangs": {func(c *Config) {
			c.Fleet.Fault = fault(hung, func(f *Fault) { f.At, f.For = 300*time.Second, 200*time.Second })
		}, false},
		"rolling restart": {func(c *Config) {
			c.Fleet.Stops = Stops{First: 200 * time.Second, Every: time.Minute, Away: 20 * time.Second}
		}, false},
		"impatience": {func(c *Config) { c.Sidecars.Leave, c.Sidecars.Again = 10*time.Second, 2 }, false},
	} {
		waits := map[bool]time.Duration{}
		for _, withdraw := range []bool{false, true} {
			cfg := setup(t, "expected", "none", 4, 3)
			cfg.Sidecars.Count, cfg.Sidecars.Hints, cfg.Sidecars.Withdraw = 3, true, withdraw
			c.change(&cfg)
			cfg.Source = slices.Values(jobs)
			ended := map[int64]bool{}
			cfg.Observe = func(r *Result) {
				require.False(t, ended[r.Number])
				ended[r.Number] = true
				waits[withdraw] += r.Wait + r.Stalled
				if c.whole {
					require.Equal(t, Done, r.Outcome)
				}
			}
			totals, err := Run(t.Context(), cfg)
			require.NoError(t, err)
			assert.Len(t, ended, len(jobs))
			assert.Zero(t, totals.InFlight)
			assert.Equal(t, []bool{withdraw, withdraw}, []bool{totals.Withdrawn > 10, totals.Refused > 10}, "%s: %d withdrawn, %d refused", name, totals.Withdrawn, totals.Refused)
			t.Logf("%s: %v: %v, %d withdrawn, %d refused", name, withdraw, waits[withdraw]/time.Duration(len(jobs)), totals.Withdrawn, totals.Refused)
		}
		assert.Less(t, waits[true], waits[false], name)
	}
}
