// Package executor runs the joblets of rule processing jobs on a number of cores,
// as sections 3.4 and 3.5 of the thesis describe.
//
// A job is a chain of joblets: each needs the result of the one before it. Joblets
// wait for a core, high priority first, then in the order in which their jobs came.
// A running joblet is never interrupted. Equal joblets run once: a job takes a
// result that is cached, and joins a joblet that is running or waiting. Results
// stay in a cache with a bound in bytes; it evicts its oldest entries first.
//
// The machine is a plain state machine without lock, goroutine or clock. The
// Executor is the shell that adds them.
package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is the error of jobs that are open when the executor closes.
var ErrClosed = errors.New("the executor is closed")

// MaxCores bounds the cores of an executor.
const MaxCores = 4096

// Config is what an executor is made of.
type Config struct {
	Cores      int   // joblets that run at the same time: 1 to 4096
	CacheBytes int64 // memory for results; 0 keeps none
}

// Load is what an executor does at one instant.
type Load struct {
	Cores, Busy int             // joblets that can run at the same time, and that run
	Running     [priorities]int // jobs and prefetches taken in and not closed, less those whose next joblet is stalled
	Stalled     [priorities]int // joblets that are ready and wait for a core
	Totals      Totals
}

// Totals count events since the executor was made. They never shrink.
type Totals struct {
	Started   [priorities][kinds]uint64 // joblets
	Completed [priorities][kinds]uint64 // joblets, including those that failed
	Evictions uint64                    // results removed from the cache to make room
}

// Executor runs joblets. Its methods are safe for concurrent use.
type Executor struct {
	ctx    context.Context // of running joblets
	cancel context.CancelFunc
	wg     sync.WaitGroup // running joblets

	mu      sync.Mutex
	machine *machine
	open    map[*job]*Job
}

// New makes an executor. The caller closes it.
func New(c Config) (*Executor, error) {
	if c.Cores < 1 || c.Cores > MaxCores {
		return nil, fmt.Errorf("cores: want 1 to %d, got %d", MaxCores, c.Cores)
	}
	if c.CacheBytes < 0 {
		return nil, fmt.Errorf("cache bytes: want 0 or more, got %d", c.CacheBytes)
	}
	e := &Executor{machine: newMachine(c.Cores, c.CacheBytes), open: map[*job]*Job{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Job is a request that Submit took in.
type Job struct {
	executor *Executor
	job      *job
	changed  chan struct{} // has a value after the job started or ended
}

// Submit takes a job in. The caller closes it, also when it fails.
func (e *Executor) Submit(r Request) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := &Job{executor: e, job: e.machine.submit(time.Now(), r), changed: make(chan struct{}, 1)}
	e.open[j.job] = j
	e.dispatch()
	return j
}

// Wait blocks until the job has its result or an error: a joblet's,
// ErrQueueTimeout, ErrEvaluateTimeout, ErrClosed or the cause of ctx's end.
func (j *Job) Wait(ctx context.Context) (Result, error) {
	if err := j.await(ctx, func(j *job) bool { return !j.ended.IsZero() }); err != nil {
		return Result{}, err
	}
	j.executor.mu.Lock()
	defer j.executor.mu.Unlock()
	return j.job.result, j.job.err
}

// AwaitStart blocks until the job has started, or has ended without a start. The
// error is ErrClosed or the cause of ctx's end.
func (j *Job) AwaitStart(ctx context.Context) error {
	return j.await(ctx, func(j *job) bool { return !j.started.IsZero() || !j.ended.IsZero() })
}

// await blocks until done, which is called with the lock held.
func (j *Job) await(ctx context.Context, done func(*job) bool) error {
	e := j.executor
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.mu.Lock()
		now := time.Now()
		e.machine.expire(now, j.job)
		isDone, deadline := done(j.job), j.job.deadline()
		e.mu.Unlock()
		if isDone {
			return nil
		}
		timer.Reset(deadline.Sub(now))
		select {
		case <-j.changed:
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.ctx.Done():
			return ErrClosed
		}
	}
}

// Facts returns what is known of the job so far.
func (j *Job) Facts() Facts {
	j.executor.mu.Lock()
	defer j.executor.mu.Unlock()
	return j.job.facts()
}

// Close takes the job out and drops its joblets. Joblets that run, or that another
// job needs too, go on.
func (j *Job) Close() {
	e := j.executor
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.leave(j.job)
	delete(e.open, j.job)
}

// Load returns what the executor does now.
func (e *Executor) Load() Load {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.load()
}

// Close ends all jobs with ErrClosed and waits for the joblets that run.
func (e *Executor) Close() {
	e.mu.Lock()
	e.cancel() // under the lock, so that nothing starts after it
	e.mu.Unlock()
	e.wg.Wait()
}

// dispatch starts joblets while a core is free. The caller holds the lock.
func (e *Executor) dispatch() {
	if e.ctx.Err() != nil {
		return
	}
	for {
		n, started := e.machine.start(time.Now())
		if n == nil {
			return
		}
		e.notify(started)
		e.wg.Go(func() { e.run(n) })
	}
}

func (e *Executor) run(n *node) {
	result, err := n.joblet.Work(e.ctx, n.input.Value)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notify(e.machine.finish(time.Now(), n, result, err))
	e.dispatch()
}

// notify wakes the goroutines in Wait for the jobs. The caller holds the lock.
func (e *Executor) notify(jobs []*job) {
	for _, j := range jobs {
		select {
		case e.open[j].changed <- struct{}{}:
		default: // it has not seen the last change yet, and will see both
		}
	}
}
