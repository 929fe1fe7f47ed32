package dispatch

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

var (
	// ErrAtLimit is in the error of a job whose project has as many jobs in flight as projects.limit allows.
	ErrAtLimit = errors.New("the project has as many jobs in flight as it may have")
	// ErrRate is in the error of a job whose project submits more jobs than projects.per_minute allows.
	ErrRate = errors.New("the project submits more jobs per minute than it may")
)

// LaterError is the error of a job that is refused at once because of its project, and could be served
// after some time.
type LaterError struct {
	Err   error
	After time.Duration
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// ProjectSettings bounds what one project takes of this sidecar.
type ProjectSettings struct {
	// Limit is how many jobs of one project may be in flight from this sidecar;
	// further ones wait in the queue. Below 1 it is a share of this sidecar's jobs in flight,
	// and acts only while no upstream has a free core. 0 is no limit.
	Limit float64 `yaml:"limit"`
	// PerMinute is how many jobs of one project this sidecar accepts per minute; 0 is no limit. Further ones get
	// 429 at once, with the time until the next is accepted.
	PerMinute int `yaml:"per_minute"`
}

const (
	maxProjectLimit = 100_000
	maxPerMinute    = 6_000_000
)

// Check reports what cannot be used.
func (s ProjectSettings) Check(f *settings.Faults) {
	f.Between("limit", s.Limit, 0, maxProjectLimit)
	f.Within("per_minute", s.PerMinute, 0, maxPerMinute)
	if s.Limit > 1 && s.Limit != math.Trunc(s.Limit) {
		f.Add("limit", "%v is neither a whole number nor a share below 1", s.Limit)
	}
}

// SetProjects replaces the bounds on projects. Jobs that wait keep their places.
func (d *Dispatcher) SetProjects(s ProjectSettings) { d.projects = s }

// ProjectLoad is what one project has of a sidecar.
type ProjectLoad struct {
	// Name is the project's identifier, or the fairness ID that a gateway gives instead.
	Name string `json:"name"`
	// InFlight is how many of its jobs are at upstreams, and Waiting how many are in
	// the sidecar's queue. Limit is how many may be in flight; 0 is no limit.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Limit    int `json:"limit"`
}

// Projects is what the projects of those names have now, by their hashes.
func (d *Dispatcher) Projects(now time.Time, names map[uint64]string) []ProjectLoad {
	most, loads := 0, []ProjectLoad{}
	if d.acts(&limit{now: now}) {
		most = d.most()
	}
	for project, name := range names {
		loads = append(loads, ProjectLoad{name, d.pool.Open(project), d.queue.backlogs.of(project), most})
	}
	return loads
}

// Limited is how many jobs wait because their project is at its limit.
func (d *Dispatcher) Limited(now time.Time) (jobs int) {
	l := limit{now: now}
	for project := range d.queue.backlogs {
		if d.atLimit(&l, project) {
			jobs += d.queue.backlogs.of(project)
		}
	}
	return jobs
}

// most is how many jobs of one project may be in flight while limits act; 0 is no limit.
func (d *Dispatcher) most() int {
	if d.projects.Limit >= 1 {
		return int(d.projects.Limit)
	}
	return int(math.Ceil(d.projects.Limit * float64(max(1, d.pool.InFlight()))))
}

// limit is the instant of an event, and whether limits act then. One that is a share acts only while no upstream has a
// free core. To find that out takes a look at every upstream: once for an event, and only if a project has many jobs.
type limit struct {
	now         time.Time
	acts, known bool
}

// acts reports whether limits act.
func (d *Dispatcher) acts(l *limit) bool {
	if !l.known {
		l.acts, l.known = d.projects.Limit >= 1 || d.projects.Limit > 0 && d.pool.Full(l.now), true
	}
	return l.acts
}

// atLimit reports whether a project has as many jobs in flight as it may have. Jobs
// without a project have no limit.
func (d *Dispatcher) atLimit(l *limit, project uint64) bool {
	most := d.most()
	return most > 0 && project != 0 && d.pool.Open(project) >= most && d.acts(l)
}

// held reports whether j may go to no upstream because of its project's limit. A job
// that has been to all is not held: it ends.
func (d *Dispatcher) held(l *limit, j *Job) bool {
	return d.atLimit(l, j.Project) && !d.pool.AllTried(l.now, d.tried(l.now, j))
}

// first reports whether a newcomer would overtake nobody: nobody waits who goes
// before it, except jobs that are held.
func (d *Dispatcher) first(l *limit, j *Job) bool {
	for w := range d.queue.all {
		if j.Priority == selection.High && w.Priority == selection.Low {
			break
		}
		if !d.atLimit(l, w.Project) {
			return false
		}
	}
	return true
}

// errAtLimit is the error of a job that its project's limit holds.
func (d *Dispatcher) errAtLimit() error { return fmt.Errorf("%w (%d)", ErrAtLimit, d.most()) }

// rate counts a new job, and returns the error of one that its project may not submit now.
func (d *Dispatcher) rate(now time.Time, j *Job) error {
	if d.projects.PerMinute == 0 || j.Project == 0 {
		return nil
	}
	if after := d.rates.take(now, j.Project, d.projects.PerMinute); after > 0 {
		return &LaterError{fmt.Errorf("%w (%d)", ErrRate, d.projects.PerMinute), after}
	}
	return nil
}

// lag returns the error of a job that would not be served within its queue time, because jobs of its project,
// which is at its limit, wait already and get upstreams too slowly.
func (d *Dispatcher) lag(l *limit, j *Job) error {
	of := d.queue.backlogs[j.Project]
	if of == nil || !d.held(l, j) {
		return nil
	}
	takes := of.timeFor(l.now, j.Priority)
	if takes <= max(d.patience(j)-j.waited, 0) {
		return nil
	}
	return &LaterError{fmt.Errorf("%w, and its %d waiting jobs need about %v", d.errAtLimit(), d.queue.backlogs.of(j.Project), takes.Round(time.Second)), takes}
}

// Waited is the error of a job that has waited as long as it may: ErrWaited, or an ErrAtLimit
// if its project holds it up. The shell asks before it calls GiveUp.
func (d *Dispatcher) Waited(now time.Time, j *Job) error {
	if j.place != nil && d.held(&limit{now: now}, j) {
		return d.errAtLimit()
	}
	return ErrWaited
}
