// Package pool keeps the upstreams and their live state, and chooses among
// them: membership, jobs in flight, reports with their age, eligibility,
// drain, and what was learned about projects.
//
// It is a machine, not a service: it owns no clock, lock or goroutine. Time
// and random numbers are arguments, so that the sidecar and the simulator run
// the same code. It is not safe for concurrent use; internal/balancer guards
// it with one mutex.
//
// Claim filters, picks and counts in one step and returns an Assignment; the
// holder ends it with Assignment.Done, which takes the count back and learns
// from the attempt.
package pool
