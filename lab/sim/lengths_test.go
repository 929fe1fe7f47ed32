package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// Where the channels of a project differ, sidecars that know the channel let upstreams distinguish short jobs from long ones:
// jobs wait less than with one expected duration per project, also with several sidecars that each see a part of the jobs.
func TestLengthsByChannel(t *testing.T) {
	const servers, n, seeds = 4, 4000, 3
	for _, sidecars := range []int{1, 8} {
		waits := map[bool]float64{}
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 505))
			var jobs []trace.Job
			for at := 0.0; len(jobs) < n; at += rng.ExpFloat64() / (0.85 * servers) {
				channel := 1 + rng.Int64N(4)
				jobs = append(jobs, trace.Job{
					Offset: at, Project: trace.Project('a' + rune(rng.IntN(8))), Channel: channel, Load: 0.02, Bytes: 500_000,
					Operators: []float64{0.1, 0.2, 0.5, 3.2}[channel-1] * (0.5 + rng.Float64()),
					Submitter: rng.Int64N(1000), Timeouts: trace.Timeouts{Queue: 240},
				})
			}
			for _, keyed := range []bool{false, true} {
				c := setup(t, "least-in-flight", "none", servers, 1)
				c.Source, c.Fleet.Order, c.Sidecars.Count, c.Sidecars.Hints, c.Sidecars.LengthKey = slices.Values(jobs), expected, sidecars, true, keyed
				c.Observe = func(r *Result) { waits[keyed] += r.Wait.Seconds() / n / seeds }
				_, err := Run(t.Context(), c)
				require.NoError(t, err)
			}
		}
		t.Logf("%d sidecars: jobs wait %.2f s by project, %.2f s by channel", sidecars, waits[false], waits[true])
		assert.Less(t, waits[true], 0.8*waits[false])
	}
}
