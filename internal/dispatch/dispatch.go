// Package dispatch decides which job goes to an upstream next, how long a job
// waits for one, and whether a failed attempt is followed by another.
//
// It is a machine over a pool of upstreams and a queue of waiting jobs: it owns
// no clock, lock, channel or goroutine. The instant is an argument and the
// random source is given, so that the sidecar and the simulator run the same
// rules. It is not safe for concurrent use; internal/balancer guards it with
// one mutex.
//
// A job begins once (Begin). For each attempt it arrives (Arrive), and either
// gets an upstream at once or waits until Serve grants it one, or until its
// shell gives it up (GiveUp). After a failed attempt, Failed says whether the
// job may arrive again, and after which pause.
package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is a dispatcher's settings and what it stands on.
type Config struct {
	Retry    RetrySettings
	Queue    QueueSettings
	Projects ProjectSettings // none is limited by default

	// Pool is the upstreams; required.
	Pool *pool.Pool
	// Rand draws the pauses between attempts; required.
	Rand *rand.Rand
}

// Dispatcher decides for all jobs of one sidecar.
type Dispatcher struct {
	pool   *pool.Pool
	rng    *rand.Rand
	retry  RetrySettings
	queue  queue
	budget budget
	rates  rates

	projects ProjectSettings
	shed     []Grant // of jobs that lost their place, until Serve returns them
}

// New returns a dispatcher that no job waits for.
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

// Pool is the upstreams that the jobs go to.
func (d *Dispatcher) Pool() *pool.Pool { return d.pool }

// Waiting is how many jobs wait for an upstream.
func (d *Dispatcher) Waiting() int { return d.queue.len() }

// WaitingBytes is what their bodies take.
func (d *Dispatcher) WaitingBytes() int64 { return d.queue.bytes }

// SetRetry replaces the bounds on attempts. A job that has begun keeps its time.
func (d *Dispatcher) SetRetry(s RetrySettings) { d.retry = s }

// SetQueue replaces the bounds on the jobs that wait. Those that wait already keep
// their places and their time.
func (d *Dispatcher) SetQueue(s QueueSettings) { d.queue.bounds = s }

// Begin takes in a new job.
func (d *Dispatcher) Begin(r Request) *Job { return d.retry.Begin(r) }

// Arrive asks for an upstream for a job's next attempt. If granted is false the
// job waits until Job.GiveUpAt, and the shell calls Serve next: others may
// have lost their places.
//
// A job does not overtake those that wait, unless they wait for their project's
// limit. One that has been to every upstream hears so at once, and so does one that
// may go to some upstreams only, and finds none of them eligible. A prefetch does not wait.
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
	l := limit{now: now}
	if d.pool.AllTried(now, d.tried(now, j)) || j.among != nil || d.first(&l, j) {
		if g, heard := d.ask(&l, j); heard == served {
			return g, true
		}
	}
	return d.enqueue(&l, j)
}

// enqueue makes the job wait, or tells why it may not.
func (d *Dispatcher) enqueue(l *limit, j *Job) (g Grant, granted bool) {
	if j.among != nil || j.Prefetch {
		err := pool.ErrBusy
		if j.among != nil {
			err = fmt.Errorf("%w of the %d that it may go to", pool.ErrNoneEligible, j.among.Len())
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

// Serve offers the upstreams to the waiting jobs, in order, and returns those
// whose wait is over. The shell calls it after every event that may have made
// an upstream eligible.
func (d *Dispatcher) Serve(now time.Time) []Grant {
	over := d.shed
	d.shed = nil
	if d.queue.len() == 0 {
		return over
	}
	l := limit{now: now}
	d.queue.serve(func(j *Job) reply {
		g, heard := d.ask(&l, j)
		if heard == served {
			l = limit{now: now}
			j.waited += now.Sub(j.since)
			over = append(over, g)
		}
		return heard
	})
	return over
}

// GiveUp takes a job that ends out of the queue, and reports whether it was waiting:
// if not, Serve was first and has granted it something.
func (d *Dispatcher) GiveUp(j *Job) bool { return d.queue.remove(j) }

// ask asks the pool for an upstream for j.
func (d *Dispatcher) ask(l *limit, j *Job) (Grant, reply) {
	if d.held(l, j) {
		return Grant{}, passedOver
	}
	tried := d.tried(l.now, j)
	r := pool.Request{Project: j.Project, Data: j.Data, Priority: j.Priority, Among: j.among, Bytes: j.DataBytes, Prefetch: j.Prefetch}
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

// tried are the upstreams that j may not go to. After a failure on a pooled
// connection that may just have been stale, and when no other upstream is left,
// the last one may be asked once more. The next connection is a fresh one in any case:
// a second stale one would use up the job's only repetition, though it ran nowhere.
func (d *Dispatcher) tried(now time.Time, j *Job) *pool.Places {
	if j.stale && d.pool.AllTried(now, &j.tried) {
		return j.tried.WithoutLast()
	}
	return &j.tried
}
