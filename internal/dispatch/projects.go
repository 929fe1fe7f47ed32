package dispatch

import (
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// ErrAtLimit: the job's project has as many jobs in flight as it may have. The
// error of a job is an AtLimit.
var ErrAtLimit = errors.New("the project has as many jobs in flight as it may have")

// AtLimit is why a job of a project at its limit was refused.
type AtLimit struct {
	// Limit is how many jobs of the project may be in flight.
	Limit int
	// Wait is how long a new job of the project would wait, and RetryAfter in what
	// time it would be allowed to.
	Wait, RetryAfter time.Duration
}

func (e *AtLimit) Error() string {
	return fmt.Sprintf("%v (%d), and a new job would wait for %v", ErrAtLimit, e.Limit, e.Wait.Round(time.Millisecond))
}

// Unwrap returns ErrAtLimit.
func (e *AtLimit) Unwrap() error { return ErrAtLimit }

// ProjectSettings bounds what one project takes of this sidecar.
type ProjectSettings struct {
	// Limit is how many jobs of one project may be in flight from this sidecar;
	// further ones wait in the queue. 0 is no limit.
	Limit int `yaml:"limit"`
	// Lag is the longest wait that a job of a project at its limit may expect. A job
	// that would wait longer is refused at once with 429 and a Retry-After. 0 lets
	// jobs wait as long as any may.
	Lag time.Duration `yaml:"lag"`
	// Fair lets projects take turns in the queue, within a priority. When the queue
	// is full, the project with the most jobs in it loses its last. Otherwise the
	// queue is first come, first served.
	Fair bool `yaml:"fair"`
	// Overrides are the limits of single projects: a list of id and limit.
	Overrides []ProjectLimit `yaml:"overrides"`
}

// ProjectLimit is the limit of the project with an identifier; 0 is no limit.
type ProjectLimit struct {
	ID    string `yaml:"id"`
	Limit int    `yaml:"limit"`
}

const (
	maxProjectLimit = 1_000_000
	maxOverrides    = 10_000
)

// Check reports what cannot be used, and what does nothing.
func (s ProjectSettings) Check(f *settings.Faults) {
	f.Within("limit", s.Limit, 0, maxProjectLimit)
	f.NotNegative("lag", s.Lag)
	if len(s.Overrides) > maxOverrides {
		f.Add("overrides", "%d are more than %d", len(s.Overrides), maxOverrides)
		return
	}
	seen := map[string]bool{}
	limited := s.Limit > 0
	for i, o := range s.Overrides {
		at := f.In(fmt.Sprintf("overrides[%d]", i))
		at.Within("limit", o.Limit, 0, maxProjectLimit)
		switch {
		case o.ID == "":
			at.Add("id", "it is missing")
		case seen[o.ID]:
			at.Add("id", "%q has a limit above", o.ID)
		}
		seen[o.ID], limited = true, limited || o.Limit > 0
	}
	if s.Lag > 0 && !limited {
		f.Warn("lag", "no project has a limit, so that no job is refused for it")
	}
}

// limits are the settings, ready to be asked.
type limits struct {
	ProjectSettings
	of  map[uint64]int // overrides, by the hash of the project
	any bool           // some project has a limit
}

func newLimits(s ProjectSettings) limits {
	l := limits{ProjectSettings: s, of: make(map[uint64]int, len(s.Overrides)), any: s.Limit > 0}
	for _, o := range s.Overrides {
		l.of[intake.Key(o.ID)] = o.Limit
		l.any = l.any || o.Limit > 0
	}
	return l
}

// limit is how many jobs of a project may be in flight; 0 is no limit. Jobs without
// a project have none.
func (l *limits) limit(project uint64) int {
	if !l.any || project == 0 {
		return 0
	}
	if own, ok := l.of[project]; ok {
		return own
	}
	return l.Limit
}

// SetProjects replaces the bounds on projects. Jobs that wait keep their places.
func (d *Dispatcher) SetProjects(s ProjectSettings) {
	d.limits = newLimits(s)
	d.queue.fair = s.Fair
}

// ProjectLoad is what one project has of a sidecar.
type ProjectLoad struct {
	// InFlight is how many of its jobs are at upstreams, and Waiting how many are in
	// the sidecar's queue. Limit is how many may be in flight; 0 is no limit.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Limit    int `json:"limit"`
}

// Project is what a project has now, by its hash.
func (d *Dispatcher) Project(project uint64) ProjectLoad {
	load := ProjectLoad{InFlight: d.pool.Open(project), Limit: d.limits.limit(project)}
	if l := d.queue.lines[project]; l != nil {
		load.Waiting = l.ahead(selection.Low)
	}
	return load
}

// Limited is how many jobs wait because their project is at its limit.
func (d *Dispatcher) Limited() (jobs int) {
	if !d.limits.any {
		return 0
	}
	for project, l := range d.queue.lines {
		if d.full(project) {
			jobs += l.ahead(selection.Low)
		}
	}
	return jobs
}

// full reports whether a project has as many jobs in flight as it may have.
func (d *Dispatcher) full(project uint64) bool {
	limit := d.limits.limit(project)
	return limit > 0 && d.pool.Open(project) >= limit
}

// held reports whether j may go to no upstream because of its project's limit. A job
// that has been to all is not held: it is told so.
func (d *Dispatcher) held(j *Job) bool {
	if !d.full(j.Project) {
		return false
	}
	tried, _ := d.tried(j)
	return !d.pool.AllTried(tried)
}

// first reports whether a newcomer would overtake nobody: nobody waits who goes
// before it, but for jobs that are held.
func (d *Dispatcher) first(j *Job) bool {
	if d.queue.ahead(j.Priority) == 0 {
		return true
	}
	if !d.limits.any {
		return false
	}
	for project, l := range d.queue.lines {
		if l.ahead(j.Priority) > 0 && !d.full(project) {
			return false
		}
	}
	return true
}

// lags is the error of a held newcomer that would wait for too long; nil if it may
// wait. A job that comes for another attempt may always.
func (d *Dispatcher) lags(now time.Time, j *Job) error {
	if d.limits.Lag == 0 || len(j.tried) > 0 || j.rounds > 0 {
		return nil
	}
	if e := d.atLimit(now, j); e.Wait > d.limits.Lag {
		return e
	}
	return nil
}

// atLimit tells what a newcomer like j would have to expect.
func (d *Dispatcher) atLimit(now time.Time, j *Job) *AtLimit {
	e := &AtLimit{Limit: d.limits.limit(j.Project)}
	if l := d.queue.lines[j.Project]; l != nil {
		e.Wait = l.wait(now, j.Priority)
	}
	e.RetryAfter = e.Wait - d.limits.Lag
	return e
}

// Waited is the error of a job that has waited as long as it may: ErrWaited, or an
// AtLimit if its project holds it up. The shell asks before it calls GiveUp.
func (d *Dispatcher) Waited(now time.Time, j *Job) error {
	if j.place != nil && d.held(j) {
		return d.atLimit(now, j)
	}
	return ErrWaited
}
