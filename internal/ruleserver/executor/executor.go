// Package executor runs the joblets of rule processing jobs on a number of cores,
// as sections 3.4 and 3.5 of the thesis describe.
//
// A job is a chain of joblets: each needs the result of the one before it. Joblets
// wait for a core: high priority first, then by the expected duration of their jobs
// (package order). A joblet that can use several cores waits for one, and then takes as many
// as are free. A running joblet is never interrupted. Equal joblets run once: a job uses a
// cached result, or joins a running or waiting joblet. Results
// are cached up to a number of bytes; the oldest are evicted first.
//
// The machine is a state machine without lock, goroutine or clock. The
// Executor adds them.
package executor

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed is the error of jobs that are open when the executor closes.
var ErrClosed = errors.New("the executor is closed")

// Load is the load of an executor at one instant.
type Load struct {
	Cores, Busy int             // number of cores, and of cores that run joblets
	Running     [priorities]int // submitted jobs that have not left, without those whose next joblet is stalled
	Stalled     [priorities]int // ready joblets that wait for a core
}

// Executor runs joblets. Its methods are safe for concurrent use.
type Executor struct {
	ctx    context.Context // of running joblets
	cancel context.CancelFunc
	wg     sync.WaitGroup // running joblets

	onJoblet func(JobletRecord)

	mu      sync.Mutex
	machine *machine
}

// New returns an executor with a number of cores, and a cache of this many bytes; 0 is no
// cache. onJoblet is called with the record of each ended joblet, from several goroutines; it can be
// nil. The caller must close the executor.
func New(cores int, cacheBytes int64, onJoblet func(JobletRecord)) *Executor {
	e := &Executor{machine: newMachine(cores, cacheBytes), onJoblet: onJoblet}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Submit adds a job. The caller must call Leave with it, even if it fails.
func (e *Executor) Submit(r Request) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.machine.submit(time.Now(), r)
	e.dispatch()
	return j
}

// Wait blocks until the job has its result or an error: a joblet's,
// ErrQueueTimeout, ErrEvaluateTimeout, ErrClosed or the cause of ctx's end.
func (e *Executor) Wait(ctx context.Context, j *Job) (Result, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		e.mu.Lock()
		e.machine.expire(now, j)
		ended, left, result, err := !j.ended.IsZero(), j.deadline().Sub(now), j.result, j.err
		e.mu.Unlock()
		if ended {
			return result, err
		}
		timer.Reset(left)
		select {
		case <-j.changed:
		case <-timer.C:
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		case <-e.ctx.Done():
			return Result{}, ErrClosed
		}
	}
}

// Withdraw ends a job that has not started with ErrWithdrawn, and reports whether it did.
func (e *Executor) Withdraw(j *Job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.withdraw(time.Now(), j)
}

// Facts returns the facts of the job so far.
func (e *Executor) Facts(j *Job) Facts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return j.facts()
}

// Leave removes the job and its joblets. Joblets that run, or that other jobs also
// need, continue.
func (e *Executor) Leave(j *Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.leave(j)
}

// Load returns the current load.
func (e *Executor) Load() Load {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.load()
}

// Has reports whether the result of a joblet is cached, or the joblet waits or runs.
func (e *Executor) Has(key Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, cached := e.machine.cache.get(key)
	return cached || e.machine.nodes[key] != nil
}

// Statistics returns the statistics of the joblets so far.
func (e *Executor) Statistics() AllStatistics {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.machine.statistics
	all.Evictions, all.Bytes = e.machine.cache.evictions, e.machine.cache.used
	return all
}

// Projects returns the cached data of projects, the oldest first, and the
// number of changes of the cache so far.
func (e *Executor) Projects() (projects []Cached, changes uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.cache.projects(), e.machine.cache.changes
}

// ReplaceCache empties the cache and adds these results, the first one as the
// oldest. Results that do not fit push out older ones.
func (e *Executor) ReplaceCache(results []Cached) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.cache.clear()
	for _, r := range results {
		e.machine.cache.put(time.Now(), r.Key, r.Result)
	}
}

// Close ends all jobs with ErrClosed and waits for the running joblets.
func (e *Executor) Close() {
	e.mu.Lock()
	e.cancel() // under the lock, so that no joblet starts afterwards
	e.mu.Unlock()
	e.wg.Wait()
}

// dispatch starts joblets while a core is free. The caller holds the lock.
func (e *Executor) dispatch() {
	if e.ctx.Err() != nil {
		return
	}
	for n := e.machine.start(time.Now()); n != nil; n = e.machine.start(time.Now()) {
		e.wg.Go(func() { e.run(n) })
	}
}

func (e *Executor) run(n *node) {
	result, err := n.joblet.Work(e.ctx, n.input.Value, n.cores)
	record := e.finish(n, result, err)
	if e.onJoblet != nil {
		e.onJoblet(record)
	}
}

func (e *Executor) finish(n *node, result Result, err error) JobletRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.dispatch()
	return e.machine.finish(time.Now(), n, result, err)
}
