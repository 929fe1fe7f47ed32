package balancer

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Lease is one attempt's claim on an upstream, safe to use beside others.
// Done must be called once on every path.
type Lease struct {
	*pool.Lease
	b        *Balancer
	upstream pool.Upstream
}

// lease wraps a claim; the mutex must be held.
func (b *Balancer) lease(l *pool.Lease) *Lease {
	return &Lease{Lease: l, b: b, upstream: l.Upstream()}
}

// Upstream is where the attempt goes, as it was known at the claim.
func (l *Lease) Upstream() pool.Upstream { return l.upstream }

// Answered notes that an answer has begun; see pool.Lease.
func (l *Lease) Answered(healthy bool, hint *pool.Hint) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.Lease.Answered(time.Now(), healthy, hint)
}

// Done ends the lease and offers the upstream to the jobs that wait.
func (l *Lease) Done(o pool.Outcome) {
	l.b.mu.Lock()
	now := time.Now()
	l.Lease.Done(now, o)
	served := l.b.serve(now)
	l.b.mu.Unlock()
	l.b.tell(served)
}
