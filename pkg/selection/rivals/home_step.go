package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

// The upstreams of HomeStep are like the proposal's example servers, which
// hold 16 containers on 8 cores.
const (
	homeStepSlots = 2 // jobs that an upstream takes for each of its cores
	homeStepCores = 8 // where their number is not known
)

// HomeStep starts at the project's home, which is its hash modulo the number of
// upstreams. It goes on in steps until an upstream has a free slot. The step
// has no factor in common with the number of upstreams, so that every upstream
// is visited once. When none has a free slot, a random one must take the job.
// A job without a project starts at a random upstream.
//
// Source: the current scheme in the OpenWhisk scheduling proposal (home
// invoker, step size, forcible semaphore). There a controller owns a share of
// an upstream's slots and counts its own jobs. Here all slots are counted
// against the estimate of all jobs there. Weaknesses: homes move with the
// number of upstreams, and a home with a free slot is taken whatever it costs.
type HomeStep struct{}

// Pick implements selection.Policy.
func (HomeStep) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	h := hash.Mix(job.Project)
	if job.Project == 0 {
		h = rng.Uint64()
	}
	n := uint64(len(views))
	at, step := h%n, coprime(h>>32, n)
	for range n {
		cores := views[at].Cores
		if !(cores > 0) {
			cores = homeStepCores
		}
		if views[at].Jobs < homeStepSlots*cores {
			return int(at)
		}
		at = (at + step) % n
	}
	return rng.IntN(len(views))
}

// coprime is a number from 1 to n, chosen by hash, that has no factor in
// common with n.
func coprime(hash, n uint64) uint64 {
	step := hash%n + 1
	for gcd(step, n) != 1 {
		step = step%n + 1
	}
	return step
}

// gcd is the greatest common divisor of a and b.
func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
