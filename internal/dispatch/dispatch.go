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
// Serve grants it an upstream, or when its caller (the shell) calls GiveUp. After
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
		retry: cfg.Retry, queue: queue{bounds: cfg.Queue, backlogs: backlogs{}}, projects: cfg.Projects,
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
	j.Patience = d.patience(j)
	return j
}

// Arrive claims an upstream for a job's next attempt. If granted is false, the
// job is queued until Job.GiveUpAt. The shell then calls Serve, which returns the
// jobs that this job displaced from the queue.
//
// A job does not overtake queued jobs, except jobs held by their project's limit.
// Some jobs are never queued and get an error at once: a job that has tried every
// upstream, a job restricted to upstreams that are all ineligible (Request.Among),
// and a prefetch.
func (d *Dispatcher) Arrive(now time.Time, j *Job) (g Grant, granted bool) {
	if to := j.to; to != nil {
		j.to = nil
		return Grant{Job: j, Assignment: to, ConnectTimeout: j.connect}, true
	}
	if !j.counted {
		j.counted = true
		if !j.Prefetch { // no retry follows
			d.budget.job(now)
		}
		if err := d.rate(now, j); err != nil {
			return Grant{Job: j, Err: err}, true
		}
	}
	j.heavy = d.pool.Heavy(j.request())
	l := limit{now: now}
	if d.pool.AllTried(now, d.tried(now, j), j.heavy) || j.among != nil || d.first(&l, j) {
		if g, result := d.claim(&l, j); result == served {
			return g, true
		}
	}
	return d.enqueue(&l, j)
}

// Probes returns the upstreams to probe before Arrive is called, and how long the probes can take. There are none if the
// job has an upstream already, or will wait in the queue.
func (d *Dispatcher) Probes(now time.Time, j *Job) (addresses []string, timeout time.Duration) {
	if j.to != nil || d.queue.len() > 0 {
		return nil, 0
	}
	j.heavy = d.pool.Heavy(j.request())
	return d.pool.Probes(now, j.request(), d.tried(now, j))
}

// Probed takes the result of a probe for a job into account; load is nil if the probe failed.
func (d *Dispatcher) Probed(now time.Time, j *Job, address string, load *pool.Hint) {
	project := j.Project
	if j.Data != nil {
		project = 0
	}
	d.pool.Probed(now, address, project, load)
}

// enqueue adds the job to the queue, or returns a Grant with the error that prevents it.
func (d *Dispatcher) enqueue(l *limit, j *Job) (g Grant, granted bool) {
	if j.among != nil || j.Prefetch {
		err := pool.ErrBusy
		if j.among != nil {
			err = fmt.Errorf("%w of the %d to which the job is restricted", pool.ErrNoneEligible, j.among.Len())
		}
		if d.held(l, j) {
			err = d.errAtLimit()
		}
		return Grant{Job: j, Err: err}, true
	}
	if err := d.lag(l, j); err != nil {
		return Grant{Job: j, Err: err}, true
	}
	displaced, ok := d.queue.push(l.now, j)
	if !ok {
		return Grant{Job: j, Err: fmt.Errorf("%w (%d)", ErrFull, d.queue.len())}, true
	}
	for _, out := range displaced {
		d.shed = append(d.shed, Grant{Job: out, Err: ErrDisplaced})
	}
	j.since, j.until = l.now, l.now.Add(max(d.patience(j)-j.waited, 0))
	return Grant{}, false
}

// Serve tries to claim an upstream for each queued job, in order, and returns the
// jobs that left the queue. The shell calls it after every event that may have made
// an upstream eligible.
func (d *Dispatcher) Serve(now time.Time) []Grant {
	over := d.shed
	d.shed = nil
	if d.queue.len() == 0 {
		return over
	}
	l, openings := limit{now: now}, (*pool.Openings)(nil) // nil until a claim fails, and after a grant
	d.queue.serve(func(j *Job) claimResult {
		if openings != nil {
			tried := d.tried(now, j)
			if openings.Refuse(j.request(), tried) && !d.pool.AllTried(now, tried, j.heavy) {
				return unserved(tried.Len() == 0 && openings.None())
			}
		}
		g, result := d.claim(&l, j)
		switch {
		case result == served:
			l, openings = limit{now: now}, nil
			j.waited += now.Sub(j.since)
			over = append(over, g)
		case openings == nil && !d.held(&l, j):
			openings = d.pool.Openings(now)
		}
		return result
	})
	return over
}

// unserved is the result for a job that gets no upstream. all is set if no job would get one.
func unserved(all bool) claimResult {
	if all {
		return noneEligible
	}
	return passedOver
}

// GiveUp removes a job from the queue and reports whether it was there. If it was not,
// Serve has already returned a Grant for it, which the shell must handle.
func (d *Dispatcher) GiveUp(j *Job) bool { return d.queue.remove(j) }

// claim claims an upstream for j from the pool.
func (d *Dispatcher) claim(l *limit, j *Job) (Grant, claimResult) {
	if d.held(l, j) {
		return Grant{}, passedOver
	}
	tried := d.tried(l.now, j)
	r := j.request()
	if j.Fallbacks {
		r.Fallbacks = d.retry.Attempts - 1
	}
	if j.Withdraw != nil {
		r.Waiter = j
	}
	a, err := d.pool.Claim(l.now, r, tried)
	switch {
	case err == nil:
		j.tried.Add(a.Address)
		j.sent, j.panicked = l.now, a.Panic
		if of := d.queue.backlogs[j.Project]; of != nil {
			of.grant(l.now)
		}
		return Grant{Job: j, Assignment: a, ConnectTimeout: j.connect, Fresh: j.stale}, served
	case errors.Is(err, pool.ErrAllTried):
		return Grant{Job: j, Err: err}, served
	case errors.Is(err, pool.ErrNotAdmitted), tried.Len() > 0:
		return Grant{}, passedOver
	}
	return Grant{}, noneEligible
}

// tried returns the upstreams that j must not use again. One exception: if the last
// attempt failed on a pooled connection, perhaps only because the connection was stale,
// and no other upstream is left, the last upstream can be retried. That retry uses a new
// connection: a second stale one would end the job although no upstream had run it.
func (d *Dispatcher) tried(now time.Time, j *Job) *pool.Places {
	if j.stale && d.pool.AllTried(now, &j.tried, j.heavy) {
		return j.tried.WithoutLast()
	}
	return &j.tried
}
