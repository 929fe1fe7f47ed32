package balancer

import (
	"context"
	"time"
)

// recheck is how often waiting jobs are offered the upstreams when nothing
// happens: a breaker's open time or a report's freshness ends without an event.
const recheck = 50 * time.Millisecond

// Run serves waiting jobs as time passes, until ctx ends. It sleeps while
// nobody waits.
func (b *Balancer) Run(ctx context.Context) {
	ticker := time.NewTicker(recheck)
	ticker.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			ticker.Reset(recheck)
		case <-ticker.C:
			b.mu.Lock()
			served := b.serve(time.Now()) // a tick may be older than what was claimed since
			idle := b.queue.Len() == 0
			b.mu.Unlock()
			b.tell(served)
			if idle {
				ticker.Stop()
			}
		}
	}
}
