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
	// ErrAtLimit is wrapped in the error of a job whose project has reached projects.limit.
	ErrAtLimit = errors.New("the project has reached its limit of jobs in flight")
	// ErrRate is wrapped in the error of a job whose project exceeds projects.per_minute.
	ErrRate = errors.New("the project exceeds its limit of jobs per minute")
)

// LaterError refuses a job at once because of a limit of its project. After is the time after which a
// retry can succeed.
type LaterError struct {
	Err   error
	After time.Duration
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// ProjectSettings limits each project on this sidecar.
type ProjectSettings struct {
	// Limit is the maximum of one project's jobs in flight from this sidecar;
	// further jobs wait in the queue. A value below 1 is a share of this sidecar's jobs in
	// flight, and applies only while no upstream has a free core. 0 means no limit.
	Limit float64 `yaml:"limit"`
	// PerMinute is the maximum number of jobs per minute that this sidecar accepts from one project. Further jobs
	// get 429 at once, with the time until the next job is accepted in Retry-After. 0 means no limit.
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

// SetProjects replaces the limits of projects. Queued jobs keep their positions.
func (d *Dispatcher) SetProjects(s ProjectSettings) { d.projects = s }

// ProjectLoad is the load of one project on a sidecar.
type ProjectLoad struct {
	// Name is the project's identifier, or the fairness ID that a gateway gives instead.
	Name string `json:"name"`
	// InFlight is the number of its jobs at upstreams, Waiting the number in the
	// sidecar's queue. Limit is the maximum of InFlight; 0 means no limit.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Limit    int `json:"limit"`
}

// Projects returns the current load of the given projects. names maps a project's hash to its identifier.
func (d *Dispatcher) Projects(now time.Time, names map[uint64]string) []ProjectLoad {
	most, loads := 0, []ProjectLoad{}
	if d.acts(&limit{now: now}) {
		most = d.maxInFlight()
	}
	for project, name := range names {
		loads = append(loads, ProjectLoad{name, d.pool.Open(project), d.queue.backlogs.of(project), most})
	}
	return loads
}

// Limited returns the number of jobs that wait because their project is at its limit.
func (d *Dispatcher) Limited(now time.Time) (jobs int) {
	l := limit{now: now}
	for project := range d.queue.backlogs {
		if d.atLimit(&l, project) {
			jobs += d.queue.backlogs.of(project)
		}
	}
	return jobs
}

// maxInFlight returns the maximum of one project's jobs in flight while limits apply; 0 means no limit.
func (d *Dispatcher) maxInFlight() int {
	if d.projects.Limit >= 1 {
		return int(d.projects.Limit)
	}
	return int(math.Ceil(d.projects.Limit * float64(max(1, d.pool.InFlight()))))
}

// limit caches, for one event at now, whether project limits apply. A limit given as a share applies only while no
// upstream has a free core. That check visits every upstream, so it is done at most once per event, and only when needed.
type limit struct {
	now         time.Time
	acts, known bool
}

// acts reports whether project limits apply.
func (d *Dispatcher) acts(l *limit) bool {
	if !l.known {
		l.acts, l.known = d.projects.Limit >= 1 || d.projects.Limit > 0 && d.pool.Full(l.now), true
	}
	return l.acts
}

// atLimit reports whether a project has reached its limit of jobs in flight. Jobs
// without a project are not limited.
func (d *Dispatcher) atLimit(l *limit, project uint64) bool {
	most := d.maxInFlight()
	return most > 0 && project != 0 && d.pool.Open(project) >= most && d.acts(l)
}

// held reports whether j must wait because of its project's limit. A job that has tried
// every upstream is not held: it ends at once.
func (d *Dispatcher) held(l *limit, j *Job) bool {
	return d.atLimit(l, j.Project) && !d.pool.AllTried(l.now, d.tried(l.now, j), j.heavy)
}

// first reports whether a new job can be served without overtaking a queued job. Queued
// jobs that their project's limit holds do not count.
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

// errAtLimit returns the error of a job that is held by its project's limit.
func (d *Dispatcher) errAtLimit() error { return fmt.Errorf("%w (%d)", ErrAtLimit, d.maxInFlight()) }

// rate counts a new job against its project's rate limit, and returns an error if the limit is exceeded.
func (d *Dispatcher) rate(now time.Time, j *Job) error {
	if d.projects.PerMinute == 0 || j.Project == 0 {
		return nil
	}
	if after := d.rates.take(now, j.Project, d.projects.PerMinute); after > 0 {
		return &LaterError{fmt.Errorf("%w (%d)", ErrRate, d.projects.PerMinute), after}
	}
	return nil
}

// lag returns an error if j could not be served within its queue timeout: its project is at its limit, and the
// project's queued jobs get upstreams too slowly.
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

// Waited returns the error of a job whose queue timeout has passed: ErrAtLimit if its project's
// limit holds it, otherwise ErrWaited. It must be called before GiveUp.
func (d *Dispatcher) Waited(now time.Time, j *Job) error {
	if j.place != nil && d.held(&limit{now: now}, j) {
		return d.errAtLimit()
	}
	return ErrWaited
}
