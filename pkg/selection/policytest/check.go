package policytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// Contract returns an error if a policy breaks what every policy must keep to:
// it changes no view, picks one of the views whatever the numbers in them, and
// spreads jobs without a project over idle upstreams. It finds most mistakes,
// not all.
func Contract(policy selection.Policy) error {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 4000 {
		job, views := extreme(rng)
		if n%2 == 0 {
			job, views = Case(rng)
		}
		before := slices.Clone(views)
		got := policy.Pick(job, views, rng)
		if !slices.Equal(views, before) {
			return fmt.Errorf("the pick for %+v changed the views %+v to %+v", job, before, views)
		}
		if got < 0 || got >= len(views) {
			return fmt.Errorf("picked %d for %+v of the %d views %+v", got, job, len(views), views)
		}
	}
	const upstreams = 8
	counts, fair := make([]int, upstreams), make([]float64, upstreams)
	for number := range uint64(4000) {
		counts[policy.Pick(selection.Job{Number: number, Fetch: 5}, Idle(upstreams), rng)]++
	}
	for i := range fair {
		fair[i] = 1.0 / upstreams
	}
	if err := Spread(counts, fair); err != nil {
		return fmt.Errorf("jobs without a project at idle upstreams: %w", err)
	}
	return nil
}

// Check returns an error if a policy does not pick as its oracle says, or
// breaks the Contract. It picks once in each of 4,000 random cases, and 2,000 times in
// each of 100 others.
func Check(policy selection.Policy, oracle Oracle) error {
	if err := Contract(policy); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for range 4000 {
		job, views := Case(rng)
		if got := policy.Pick(job, views, rng); oracle(job, views)[got] == 0 {
			return fmt.Errorf("picked %d for %+v of %+v", got, job, views)
		}
	}
	for range 100 {
		job, views := Case(rng)
		if err := often(policy, oracle, job, views, 2000, rng); err != nil {
			return err
		}
	}
	return nil
}

// often repeats a pick and compares how often each view comes out.
func often(policy selection.Policy, oracle Oracle, job selection.Job, views []selection.View, picks int, rng *rand.Rand) error {
	counts := make([]int, len(views))
	for range picks {
		counts[policy.Pick(job, views, rng)]++
	}
	if err := Spread(counts, oracle(job, views)); err != nil {
		return fmt.Errorf("%w: for %+v of %+v", err, job, views)
	}
	return nil
}

// Spread returns an error if the counts of picks are not those of the
// probabilities, by a chi-square bound that one fair case in a million exceeds.
// Where a probability is NaN, only the views that may not be picked are checked.
func Spread(counts []int, want []float64) error {
	total, known := 0, true
	for _, n := range counts {
		total += n
	}
	square, freedom := 0.0, -1.0
	for i, p := range want {
		switch {
		case math.IsNaN(p):
			known = false
		case p == 0 && counts[i] > 0:
			return fmt.Errorf("view %d was picked %d times of %d, want never", i, counts[i], total)
		case p > 0:
			e := p * float64(total)
			square += (float64(counts[i]) - e) * (float64(counts[i]) - e) / e
			freedom++
		}
	}
	freedom = max(freedom, 1)
	// Wilson and Hilferty's approximation of the quantile.
	bound := freedom * math.Pow(1-2/(9*freedom)+4.75*math.Sqrt(2/(9*freedom)), 3)
	if known && square > bound {
		return fmt.Errorf("picked %v, want shares %v", counts, want)
	}
	return nil
}
