package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is the error of jobs that an executor cannot end because it closes.
var ErrClosed = errors.New("the executor is closed")

// MaxCores bounds the cores of an executor.
const MaxCores = 4096

// Config is what an executor is made of.
type Config struct {
	Cores      int   // joblets that run at the same time: 1 to MaxCores
	CacheBytes int64 // for results; 0 keeps none
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

// New makes an executor; close it when done.
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

// Job is a request that was submitted.
type Job struct {
	executor *Executor
	job      *job
	changed  chan struct{} // holds one value when the job started or ended
}

// Submit takes a job in. The caller closes it, whatever comes of it.
func (e *Executor) Submit(r Request) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := &Job{executor: e, job: e.machine.submit(time.Now(), r), changed: make(chan struct{}, 1)}
	e.open[j.job] = j
	e.dispatch()
	return j
}

// Wait blocks until the job has its result, or an error: that of a joblet,
// ErrQueueTimeout, ErrEvaluateTimeout, ErrClosed, or ctx's.
func (j *Job) Wait(ctx context.Context) (Result, error) {
	e := j.executor
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.mu.Lock()
		now := time.Now()
		e.machine.expire(now, j.job)
		ended, deadline := !j.job.ended.IsZero(), j.job.deadline()
		result, err := j.job.result, j.job.err
		e.mu.Unlock()
		if ended {
			return result, err
		}
		timer.Reset(deadline.Sub(now))
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

// Facts gives what the job has seen so far.
func (j *Job) Facts() Facts {
	j.executor.mu.Lock()
	defer j.executor.mu.Unlock()
	return j.job.facts()
}

// Close takes the job out. Its joblets are cancelled, but for those that run or
// that another job shares.
func (j *Job) Close() {
	e := j.executor
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.leave(j.job)
	delete(e.open, j.job)
}

// Load gives what the executor does at this instant.
func (e *Executor) Load() Load {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.load()
}

// Changes grows whenever the cached results change.
func (e *Executor) Changes() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.cache.changes
}

// Projects gives the projects whose data is cached, the oldest first, and the
// changes that led there.
func (e *Executor) Projects() (projects []CachedProject, changes uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.cache.listProjects(), e.machine.cache.changes
}

// Cached is a result and the joblet that gives it.
type Cached struct {
	Key    Key
	Result Result
}

// ReplaceCache makes the cache hold these results and no others, the first one
// the oldest, as far as they fit.
func (e *Executor) ReplaceCache(results []Cached) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.cache.clear()
	for _, r := range results {
		e.machine.cache.put(time.Now(), r.Key, r.Result)
	}
}

// Close ends all jobs with ErrClosed and waits for the joblets that run.
func (e *Executor) Close() {
	e.mu.Lock()
	e.cancel() // under the lock: nothing starts after it
	e.mu.Unlock()
	e.wg.Wait()
}

// dispatch starts what can start. The lock is held.
func (e *Executor) dispatch() {
	if e.ctx.Err() != nil {
		return
	}
	for {
		n, started := e.machine.start(time.Now())
		if n == nil {
			return
		}
		e.tell(started)
		e.wg.Go(func() { e.run(n) })
	}
}

func (e *Executor) run(n *node) {
	result, err := n.joblet.Work(e.ctx, n.input.Value)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell(e.machine.finish(time.Now(), n, result, err))
	e.dispatch()
}

// tell wakes those that wait for the jobs. The lock is held.
func (e *Executor) tell(jobs []*job) {
	for _, j := range jobs {
		select {
		case e.open[j].changed <- struct{}{}:
		default: // there is word for it already
		}
	}
}
