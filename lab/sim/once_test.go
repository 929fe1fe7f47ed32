package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// If no key occurs twice, sidecars have nothing to coordinate: from the first job on, jobs last as long as with sidecars
// that count only their own jobs, whatever upstreams with one core report.
func TestKeysThatComeOnce(t *testing.T) {
	const servers, n, cold, seeds = 8, 3000, 300, 6
	last := func(policy string, sidecars int, change func(*Config), seed uint64) (first, others float64) {
		rng := rand.New(rand.NewPCG(seed, 18))
		var jobs []trace.Job
		for i, at := 0, 0.0; i < n; i++ {
			at += rng.ExpFloat64() * 3 / (0.7 * servers)
			jobs = append(jobs, trace.Job{
				Offset: at, Project: trace.Project(fmt.Sprint(i)), Load: 1, Bytes: 25e6, Operators: 2 * rng.ExpFloat64(), Submitter: rng.Int64N(1000),
			})
		}
		c := setup(t, policy, "none", servers, 1)
		c.Source, c.Sidecars.Count = slices.Values(jobs), sidecars
		change(&c)
		c.Observe = func(r *Result) {
			if took := (r.Wait + r.Run).Seconds(); r.Arrived.Seconds() < jobs[cold].Offset {
				first += took / cold
			} else {
				others += took / (n - cold)
			}
		}
		_, err := Run(t.Context(), c)
		require.NoError(t, err)
		return first, others
	}
	for name, change := range map[string]func(*Config){
		"all": func(*Config) {}, "no cores": func(c *Config) { c.Fleet.Secretive = true },
		"nothing": func(c *Config) { c.Fleet.Secretive, c.Sidecars.Unpolled = true, true },
	} {
		for _, sidecars := range []int{1, 40} {
			var sums [2][2]float64
			for seed := range uint64(seeds) {
				for i, policy := range []string{"expected", "least-in-flight"} {
					first, others := last(policy, sidecars, change, seed)
					sums[i][0], sums[i][1] = sums[i][0]+first, sums[i][1]+others
				}
			}
			first, others := sums[0][0]/sums[1][0], sums[0][1]/sums[1][1]
			t.Logf("%d sidecars, %s: the first jobs last %.2f times as long, the others %.2f", sidecars, name, first, others)
			assert.Less(t, first, 1.2) // 40 sidecars have seen seven jobs each
			assert.Less(t, others, 1.05)
		}
	}
}
