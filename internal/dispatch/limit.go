package dispatch

import (
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// limit caches, for one event at now, whether project limits apply. A limit given as a share applies only while no
// upstream has a free core. That check visits every upstream, so it is done at most once per event, and only when needed.
type limit struct {
	now          time.Time
	apply, known bool
}

// limitsApply reports whether project limits apply.
func (d *Dispatcher) limitsApply(l *limit) bool {
	if !l.known {
		l.apply, l.known = d.projects.Limit >= 1 || d.projects.Limit > 0 && d.pool.IsFull(l.now), true
	}
	return l.apply
}

// isAtLimit reports whether a project has reached its limit of jobs in flight. Jobs
// without a project are not limited.
func (d *Dispatcher) isAtLimit(l *limit, project uint64) bool {
	most := d.maxInFlight()
	return most > 0 && project != 0 && d.pool.Open(project) >= most && d.limitsApply(l)
}

// isHeld reports whether j must wait because of its project's limit. A job that has tried
// every upstream is not held: it ends at once.
func (d *Dispatcher) isHeld(l *limit, j *Job) bool {
	return d.isAtLimit(l, j.Project) && !d.pool.AllTried(l.now, d.tried(l.now, j), j.heavy)
}

// canGoFirst reports whether a new job can be served without overtaking a queued job. It ignores
// queued jobs whose project is at its limit.
func (d *Dispatcher) canGoFirst(l *limit, j *Job) bool {
	for p := selection.High; ; p = selection.Low {
		for e := d.queue.lines[p].order.Front(); e != nil; e = e.Next() {
			if !d.isAtLimit(l, firstOf(e).Project) {
				return false
			}
		}
		if p == selection.Low || j.Priority == selection.High {
			return true
		}
	}
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

// refuseIfTooSlow returns an error if j could not be served within its queue timeout: its project is at its limit, and the
// project's queued jobs get upstreams too slowly.
func (d *Dispatcher) refuseIfTooSlow(l *limit, j *Job) error {
	of := d.queue.backlogs[j.Project]
	if of == nil || !d.isHeld(l, j) {
		return nil
	}
	takes := of.timeFor(l.now, j.Priority)
	if takes <= max(d.queueTimeout(j)-j.wait.total, 0) {
		return nil
	}
	return &LaterError{fmt.Errorf("%w, and its %d waiting jobs need about %v", d.errAtLimit(), d.queue.backlogs.of(j.Project), takes.Round(time.Second)), takes}
}

// Waited returns the error of a job whose queue timeout has passed: ErrAtLimit if its project's
// limit holds it, otherwise ErrWaited. It must be called before GiveUp.
func (d *Dispatcher) Waited(now time.Time, j *Job) error {
	if j.wait.place != nil && d.isHeld(&limit{now: now}, j) {
		return d.errAtLimit()
	}
	return ErrWaited
}

// Projects returns the current load of the given projects. names maps a project's hash to its identifier.
func (d *Dispatcher) Projects(now time.Time, names map[uint64]string) []ProjectLoad {
	most, loads := 0, []ProjectLoad{}
	if d.limitsApply(&limit{now: now}) {
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
		if d.isAtLimit(&l, project) {
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
