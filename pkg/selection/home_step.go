package selection

import "math/rand/v2"

// homeStepSlots is the jobs that an upstream takes for each of its cores (the
// proposal's example servers hold 16 containers on 8 cores).
const homeStepSlots = 2

// HomeStep starts at the project's home, its hash modulo the number of
// upstreams, and goes on in steps coprime with that number, which visit every
// upstream once, until one has a free slot. When none has, a random one is
// forced to take the job.
//
// Source: the current scheme in the OpenWhisk scheduling proposal (home
// invoker, step size, forcible semaphore). There a controller owns a share of
// an upstream's slots and counts its own jobs; here all slots are counted
// against the estimate of all jobs there. Use it to compare with: homes move
// with the number of upstreams, and a home with a free slot is taken whatever
// it costs. A job without a project starts at a random upstream.
type HomeStep struct{}

// Pick implements Policy.
func (HomeStep) Pick(job Job, views []View, rng *rand.Rand) int {
	hash := mix(job.Project)
	if job.Project == 0 {
		hash = rng.Uint64()
	}
	n := uint64(len(views))
	at, step := hash%n, coprime(hash>>32, n)
	for range n {
		if v := &views[at]; v.Jobs < homeStepSlots*coresOf(v) {
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
