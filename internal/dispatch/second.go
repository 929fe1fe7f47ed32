package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// SecondThoughts says when a job that waits at an upstream is moved to another: its
// attempt there is withdrawn. A job is moved once at most, and never when its response
// has begun or the upstream has said that the job has. A move counts as an attempt and as
// a retry.
type SecondThoughts struct {
	// Suspect moves the jobs of an upstream that becomes suspect.
	Suspect bool `yaml:"suspect"`
	// Late is how long a job waits before it is moved to an upstream that has just
	// reported a free core and costs less; 0 moves none. Only jobs are moved whose
	// upstream tells when jobs begin.
	Late time.Duration `yaml:"late"`
	// Budget is the share of the jobs of the last 10 s that may be moved. One move a
	// second is always allowed.
	Budget float64 `yaml:"budget"`
}

// DefaultSecondThoughts is the settings of an empty file.
func DefaultSecondThoughts() SecondThoughts {
	return SecondThoughts{Suspect: true, Late: 200 * time.Millisecond, Budget: 0.05}
}

// Check reports what cannot be used.
func (s SecondThoughts) Check(f *settings.Faults) {
	f.NotNegative("late", s.Late)
	f.Between("budget", s.Budget, 0, 1)
}

// Moved is a job that should go elsewhere, and why.
type Moved struct {
	Job    *Job
	Reason pool.Reason
}

// Reconsider returns the jobs whose attempts the shell must withdraw, because they should
// go elsewhere. The shell calls it after every event. When the attempt fails as
// pool.Moved, the job arrives at its new place.
func (d *Dispatcher) Reconsider(now time.Time) []Moved {
	if !d.doubts.Suspect && d.doubts.Late == 0 {
		return nil
	}
	doubt := pool.Doubt{Suspect: d.doubts.Suspect, Late: d.doubts.Late, Blind: d.blind}
	moves := d.pool.Reconsider(now, doubt, func(w pool.Waiter, sure bool) bool {
		j := ofThis(w)
		if j.moved || j.attempts+1 >= d.retry.Attempts || !sure && j.spent || !d.budget.takeMove(now, d.doubts.Budget, d.retry.Budget) {
			return false
		}
		j.moved, j.spent = true, j.spent || !sure
		return true
	})
	moved := make([]Moved, len(moves))
	for i, m := range moves {
		j := ofThis(m.Job)
		j.to = m.To
		j.tried = append(j.tried, m.To.Address)
		j.attempts++
		moved[i] = Moved{Job: j, Reason: m.Reason}
	}
	return moved
}

// SetSecondThoughts replaces the rules by which jobs are moved.
func (d *Dispatcher) SetSecondThoughts(s SecondThoughts) { d.doubts = s }

// ofThis is the job behind what the pool knows of it.
func ofThis(w pool.Waiter) *Job {
	j, ok := w.(*Job)
	if !ok {
		panic("BUG: dispatch: the pool holds a job of somebody else")
	}
	return j
}

// Stay gives up the move of a job whose attempt was not withdrawn in time.
func (d *Dispatcher) Stay(now time.Time, j *Job) {
	if j.to != nil {
		j.to.Cancel(now)
		j.to = nil
	}
}
