package dispatch

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// ErrAtLimit is in the error of a job whose project has as many jobs in flight as it may have.
var ErrAtLimit = errors.New("the project has as many jobs in flight as it may have")

// ProjectSettings bounds what one project takes of this sidecar.
type ProjectSettings struct {
	// Limit is how many jobs of one project may be in flight from this sidecar;
	// further ones wait in the queue. Below 1 it is a share of this sidecar's jobs in flight,
	// and acts only while no upstream has a free core. 0 is no limit.
	Limit float64 `yaml:"limit"`
}

const maxProjectLimit = 100_000

// Check reports what cannot be used.
func (s ProjectSettings) Check(f *settings.Faults) {
	f.Between("limit", s.Limit, 0, maxProjectLimit)
	if s.Limit > 1 && s.Limit != math.Trunc(s.Limit) {
		f.Add("limit", "%v is neither a whole number nor a share below 1", s.Limit)
	}
}

// SetProjects replaces the bounds on projects. Jobs that wait keep their places.
func (d *Dispatcher) SetProjects(s ProjectSettings) { d.limit = s.Limit }

// ProjectLoad is what one project has of a sidecar.
type ProjectLoad struct {
	// Name is the project's identifier.
	Name string `json:"name"`
	// InFlight is how many of its jobs are at upstreams, and Waiting how many are in
	// the sidecar's queue. Limit is how many may be in flight; 0 is no limit.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Limit    int `json:"limit"`
}

// Project is what a project of that hash and name has now.
func (d *Dispatcher) Project(now time.Time, project uint64, name string) ProjectLoad {
	load := ProjectLoad{Name: name, InFlight: d.pool.Open(project), Limit: d.most(now)}
	if w := d.queue.byProject[project]; w != nil {
		load.Waiting = w.ahead(selection.Low)
	}
	return load
}

// Limited is how many jobs wait because their project is at its limit.
func (d *Dispatcher) Limited(now time.Time) (jobs int) {
	most := d.most(now)
	for project, w := range d.queue.byProject {
		if d.full(most, project) {
			jobs += w.ahead(selection.Low)
		}
	}
	return jobs
}

// most is how many jobs of one project may be in flight now; 0 is no limit.
func (d *Dispatcher) most(now time.Time) int {
	switch {
	case d.limit >= 1:
		return int(d.limit)
	case d.limit > 0 && d.pool.Full(now):
		return max(1, int(math.Ceil(d.limit*float64(d.pool.InFlight()))))
	}
	return 0
}

// full reports whether a project has as many jobs in flight as it may have, which is most. Jobs
// without a project have no limit.
func (d *Dispatcher) full(most int, project uint64) bool {
	return most > 0 && project != 0 && d.pool.Open(project) >= most
}

// held reports whether j may go to no upstream because of its project's limit. A job
// that has been to all is not held: it is told so.
func (d *Dispatcher) held(most int, j *Job) bool {
	if !d.full(most, j.Project) {
		return false
	}
	tried := d.tried(j)
	return !d.pool.AllTried(tried)
}

// first reports whether a newcomer would overtake nobody: nobody waits who goes
// before it, but for jobs that are held.
func (d *Dispatcher) first(most int, j *Job) bool {
	if d.queue.ahead(j.Priority) == 0 {
		return true
	}
	if most == 0 {
		return false
	}
	for project, w := range d.queue.byProject {
		if w.ahead(j.Priority) > 0 && !d.full(most, project) {
			return false
		}
	}
	return true
}

// atLimit is the error of a job that its project holds up.
func (d *Dispatcher) atLimit(most int) error {
	return fmt.Errorf("%w (%d)", ErrAtLimit, most)
}

// Waited is the error of a job that has waited as long as it may: ErrWaited, or an ErrAtLimit
// if its project holds it up. The shell asks before it calls GiveUp.
func (d *Dispatcher) Waited(now time.Time, j *Job) error {
	if most := d.most(now); j.place != nil && d.held(most, j) {
		return d.atLimit(most)
	}
	return ErrWaited
}
