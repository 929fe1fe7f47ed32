// Package dispatch decides which job goes to an upstream next, how long a job
// waits for an upstream, and whether a failed attempt is retried.
//
// It is a state machine over a pool of upstreams and a queue of waiting jobs,
// without a clock, lock, channel or goroutine. The current time is an argument
// and the random source is given, so the sidecar and the simulator run the same
// rules. It is not safe for concurrent use; internal/balancer guards it with
// one mutex.
//
// Begin creates a job. Each attempt starts with Arrive, which grants an upstream
// at once or puts the job into the queue. A queued job leaves the queue when
// Serve grants it an upstream, or when its caller calls GiveUp. After
// a failed attempt, Failed returns whether the job may Arrive again, and after
// which pause.
package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is a dispatcher's settings and dependencies.
type Config struct {
	Retry    RetrySettings
	Queue    QueueSettings
	Projects ProjectSettings // the zero value limits no project

	// Pool holds the upstreams; required.
	Pool *pool.Pool
	// Rand draws the pauses between attempts; required.
	Rand *rand.Rand
}

// Dispatcher queues, starts and retries all jobs of one sidecar.
type Dispatcher struct {
	pool   *pool.Pool
	rng    *rand.Rand
	retry  RetrySettings
	queue  queue
	budget budget
	rates  rates

	projects ProjectSettings
	shed     []Grant // refusals of jobs displaced from the queue, until Serve returns them
}

// New returns a dispatcher with an empty queue.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Pool == nil || cfg.Rand == nil {
		return nil, errors.New("dispatch: Pool and Rand are required")
	}
	var f settings.Faults
	cfg.Retry.Check(f.In("retry"))
	cfg.Queue.Check(f.In("queue"))
	cfg.Projects.Check(f.In("projects"))
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	return &Dispatcher{
		pool: cfg.Pool, rng: cfg.Rand,
		retry: cfg.Retry, queue: newQueue(cfg.Queue), projects: cfg.Projects,
	}, nil
}

// Pool returns the pool of upstreams.
func (d *Dispatcher) Pool() *pool.Pool { return d.pool }

// Waiting returns the number of jobs in the queue.
func (d *Dispatcher) Waiting() int { return d.queue.len() }

// WaitingBytes returns the bytes of the bodies of the jobs in the queue.
func (d *Dispatcher) WaitingBytes() int64 { return d.queue.bytes }

// SetRetry replaces the retry settings. A job that has begun keeps its deadline and its connect timeout.
func (d *Dispatcher) SetRetry(s RetrySettings) { d.retry = s }

// SetQueue replaces the bounds of the queue. Jobs in the queue stay there and keep
// their deadlines.
func (d *Dispatcher) SetQueue(s QueueSettings) { d.queue.bounds = s }

// Begin returns a new job.
func (d *Dispatcher) Begin(r Request) *Job {
	j := d.retry.Begin(r)
	j.QueueTimeout = d.queueTimeout(j)
	return j
}

// SetProjects replaces the limits of projects. Queued jobs keep their positions.
func (d *Dispatcher) SetProjects(s ProjectSettings) { d.projects = s }

// queueTimeout returns a job's queue timeout: its own, or queue.wait.
func (d *Dispatcher) queueTimeout(j *Job) time.Duration {
	if j.Queue > 0 {
		return j.Queue
	}
	return d.queue.bounds.Wait
}

// tried returns the upstreams that j must not use again. One exception: if the last
// attempt failed on a pooled connection, perhaps only because the connection was stale,
// and no other upstream is left, the last upstream can be retried. That retry uses a new
// connection: a second stale one would end the job although no upstream had run it.
func (d *Dispatcher) tried(now time.Time, j *Job) *pool.AddressSet {
	if j.attempt.stale && d.pool.AllTried(now, &j.tried, j.heavy) {
		return j.tried.WithoutLast()
	}
	return &j.tried
}
