package balancer

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/prompts"
)

// Set replaces the set of upstreams in the pool.
func (b *Balancer) Set(upstreams []pool.Upstream) {
	var joined, left []string
	// Replace sorts the set with the lock held, which is fast for a sorted one.
	upstreams = slices.SortedStableFunc(slices.Values(upstreams), func(a, b pool.Upstream) int { return strings.Compare(a.Address, b.Address) })
	for rest := upstreams; len(rest) > 0; {
		b.locked(time.Now(), func(time.Time) { rest = b.pool.Prepare(rest) })
	}
	b.event(time.Now(), func(now time.Time) {
		joined, left = b.pool.Replace(now, upstreams)
		b.ready.Store(b.pool.Len() > 0)
	})
	for more := true; more; {
		b.locked(time.Now(), func(now time.Time) { more = b.pool.Forget(now) })
	}
	if len(joined) > 0 && b.hooks.Joined != nil {
		b.hooks.Joined(joined)
	}
	if len(left) > 0 && b.hooks.Gone != nil {
		b.hooks.Gone(left)
	}
}

// Drain starts or ends an operator's drain of an upstream, which then gets no new jobs. It
// reports whether the upstream is known.
func (b *Balancer) Drain(address string, on bool) (known bool) {
	b.event(time.Now(), func(time.Time) { known = b.pool.Drain(address, on) })
	return known
}

// Report passes an upstream's report to the pool.
func (b *Balancer) Report(address string, r pool.Report) {
	b.event(time.Now(), func(now time.Time) { b.pool.Report(now, address, r) })
}

// ReportFailed records that an upstream's report could not be fetched or read.
func (b *Balancer) ReportFailed(address string, why error) {
	b.event(time.Now(), func(now time.Time) { b.pool.ReportFailed(now, address, why) })
}

// Checked records the result of a health check of an upstream; why is nil if it passed.
func (b *Balancer) Checked(address string, why error) {
	b.event(time.Now(), func(now time.Time) { b.pool.Checked(now, address, why) })
}

// Listing records the contents of an upstream's cache at an instant, if they do not come
// with a report.
func (b *Balancer) Listing(address string, at time.Time, cached pool.CacheSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pool.Listing(at, address, cached)
}

// CacheChanged passes what events of an upstream report of its cache to the pool.
func (b *Balancer) CacheChanged(address string, changes []prompts.Change) {
	b.locked(time.Now(), func(now time.Time) { b.pool.CacheChanged(now, address, changes) })
}

// Settings are the settings that can be reloaded.
type Settings struct {
	Pool     pool.Settings
	Retry    dispatch.RetrySettings
	Queue    dispatch.QueueSettings
	Projects dispatch.ProjectSettings
}

// SetSettings replaces the settings, also for queued jobs.
func (b *Balancer) SetSettings(s Settings) {
	b.event(time.Now(), func(time.Time) {
		b.pool.SetSettings(s.Pool)
		b.dispatch.SetRetry(s.Retry)
		b.dispatch.SetQueue(s.Queue)
		b.dispatch.SetProjects(s.Projects)
	})
}

// Queue returns the number of jobs that wait because of their project's limit, and the bytes of the bodies of all queued jobs.
func (b *Balancer) Queue(now time.Time) (limited int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dispatch.Limited(now), b.dispatch.WaitingBytes()
}

// Ready reports whether there are upstreams. It takes no lock: each job that a full queue refuses calls it.
func (b *Balancer) Ready() bool { return b.ready.Load() }

// Bounds of the work for States and Holders in one step. Jobs can claim upstreams between two steps.
const (
	statesAtOnce  = 500
	holdersAtOnce = 8
)

// States returns the state of each upstream, sorted by address. It allocates memory before it takes the mutex: an allocation can wait
// milliseconds for the garbage collector.
func (b *Balancer) States() (all []pool.State) {
	var list *pool.StateList
	n := 0
	b.locked(time.Now(), func(now time.Time) { list, n = b.pool.ListStates(now), b.pool.Len() })
	all, step := make([]pool.State, 0, n), make([]pool.State, 0, min(n+1, statesAtOnce))
	for {
		b.locked(time.Now(), func(now time.Time) { step = list.Next(now, step) })
		if all = append(all, step...); len(step) < cap(step) {
			return all
		}
		runtime.Gosched() // otherwise the scheduler can preempt a later step, which has the mutex
	}
}

// Holders returns the upstreams that have the data of each project.
func (b *Balancer) Holders(projects []uint64) map[uint64][]string {
	all := make(map[uint64][]string, len(projects))
	for some := range slices.Chunk(projects, holdersAtOnce) {
		b.locked(time.Now(), func(now time.Time) { maps.Copy(all, b.pool.Holders(now, some)) })
	}
	return all
}

// Explain ranks the eligible upstreams for a job without claiming one.
func (b *Balancer) Explain(r pool.Request) ([]pool.Ranked, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Explain(time.Now(), r)
}

// Lengths returns what was learned of the durations of jobs.
func (b *Balancer) Lengths() []pool.Length {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Lengths()
}

// SetLengths replaces what was learned of the durations of jobs.
func (b *Balancer) SetLengths(list []pool.Length) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.SetLengths(list)
}

// Counts returns the numbers of jobs in flight and in the queue.
func (b *Balancer) Counts() (inFlight, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.InFlight(), b.dispatch.Waiting()
}
