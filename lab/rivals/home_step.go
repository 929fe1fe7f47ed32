package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

// coreShare is how many jobs an invoker takes for each of its cores.
const coreShare = 2

// HomeStep starts at the project's home, which is its hash modulo the number of upstreams, and advances in steps until it
// finds an upstream with a free slot. The step has no factor in common with the number of upstreams, so every upstream is
// visited once. If none has a free slot, the job goes to a random one. An upstream's slots are split evenly between the
// sidecars, at least one for each, and a sidecar counts its own jobs. A job without a project starts at a random upstream.
//
// Source: the present scheme in the OpenWhisk scheduling proposal (invoker slots, home invoker, step size, forcible semaphore).
// Weaknesses: homes change with the number of upstreams, and a home with a free slot is used however loaded it is.
type HomeStep struct {
	// Sidecars is the number of sidecars that share the slots; 0 is one.
	Sidecars int
}

// ForSidecar returns the policy of one of several sidecars.
func (h HomeStep) ForSidecar(sidecars int) selection.Policy { return HomeStep{sidecars} }

// Pick implements selection.Policy.
func (h HomeStep) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	mixed := hash.Mix(job.Project)
	if job.Project == 0 {
		mixed = rng.Uint64()
	}
	n := uint64(len(views))
	at, step := mixed%n, coprime(mixed>>32, n)
	for range n {
		if views[at].InFlight < max(1, coreShare*coresOf(&views[at])/float64(max(1, h.Sidecars))) {
			return int(at)
		}
		at = (at + step) % n
	}
	return rng.IntN(len(views))
}

// coprime returns a number from 1 to n, chosen by a hash, that has no factor in common with n.
func coprime(hash, n uint64) uint64 {
	step := hash%n + 1
	for gcd(step, n) != 1 {
		step = step%n + 1
	}
	return step
}

// gcd returns the greatest common divisor.
func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
