package balancer

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// Set replaces the pool's membership by a full set.
func (b *Balancer) Set(upstreams []pool.Upstream) {
	var joined, left []string
	b.event(time.Now(), func(now time.Time) { joined, left = b.pool.Set(now, upstreams) })
	if len(joined) > 0 && b.hooks.Joined != nil {
		b.hooks.Joined(joined)
	}
	if len(left) > 0 && b.hooks.Gone != nil {
		b.hooks.Gone(left)
	}
}

// Drain keeps new jobs from an upstream by hand, or ends that. It reports whether the
// upstream is known.
func (b *Balancer) Drain(address string, on bool) (known bool) {
	b.event(time.Now(), func(time.Time) { known = b.pool.Drain(address, on) })
	return known
}

// Report hands an upstream's report to the pool.
func (b *Balancer) Report(address string, r pool.Report) {
	b.event(time.Now(), func(now time.Time) { b.pool.Report(now, address, r) })
}

// ReportFailed tells the pool that an upstream's report could not be fetched or read.
func (b *Balancer) ReportFailed(address string, why error) {
	b.event(time.Now(), func(now time.Time) { b.pool.ReportFailed(now, address, why) })
}

// Checked hands a health check of an upstream to the pool; why is nil if it passed.
func (b *Balancer) Checked(address string, why error) {
	b.event(time.Now(), func(now time.Time) { b.pool.Checked(now, address, why) })
}

// Listing hands what an upstream had cached at an instant to the pool, where
// it does not come with a report.
func (b *Balancer) Listing(address string, at time.Time, cached pool.CacheSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pool.Listing(at, address, cached)
}

// Settings are what may change while jobs run.
type Settings struct {
	Pool     pool.Settings
	Retry    dispatch.RetrySettings
	Queue    dispatch.QueueSettings
	Projects dispatch.ProjectSettings
}

// SetSettings puts other settings into force, also for the jobs that wait.
func (b *Balancer) SetSettings(s Settings) {
	b.event(time.Now(), func(time.Time) {
		b.pool.SetSettings(s.Pool)
		b.dispatch.SetRetry(s.Retry)
		b.dispatch.SetQueue(s.Queue)
		b.dispatch.SetProjects(s.Projects)
	})
}

// Queue is how many jobs wait because their project is at its limit, and what the bodies of all that wait take.
func (b *Balancer) Queue(now time.Time) (limited int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dispatch.Limited(now), b.dispatch.WaitingBytes()
}

// Ready reports whether there are upstreams.
func (b *Balancer) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Len() > 0
}

// States lists the upstreams, by address.
func (b *Balancer) States() []pool.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.States(time.Now())
}

// Holders returns which upstreams have the data of each project.
func (b *Balancer) Holders(projects []uint64) map[uint64][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Holders(time.Now(), projects)
}

// Explain ranks the eligible upstreams for a job without claiming one.
func (b *Balancer) Explain(r pool.Request) ([]pool.Ranked, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Explain(time.Now(), r)
}

// Counts are how many jobs are in flight and how many wait.
func (b *Balancer) Counts() (inFlight, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.InFlight(), b.dispatch.Waiting()
}
