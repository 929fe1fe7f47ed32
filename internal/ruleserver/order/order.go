// Package order says which of the jobs of equal priority that wait for a core goes
// next: the one that is expected to be short. Mean waits fall to less than half,
// because a long job delays all that wait behind it.
//
// A job takes its turn by its arrival plus Behind: a multiple of its expected length, or of how long it
// has run already if that is more, and what its project's jobs before it are expected to take, up to a share of
// its queue timeout. So a project that floods the server stands behind others, and jobs that come later than
// that never overtake. Where lengths are heavy-tailed, a job that has run longer than expected will
// go on for long (Nuyens and Wierman, The foreground-background queue, 2008).
package order

import (
	"math"
	"time"
)

const (
	// ageing is for how many seconds a job lets shorter ones pass, for each second
	// that it is expected to take, or has taken.
	ageing = 10
	// patience is the share of its queue timeout for which a job does so at most.
	patience = 0.9
	// memory is how many of a project's last jobs count.
	memory = 30
	// trust is how many jobs of a project count as much as those of all projects together.
	trust = 0.5
	// maxProjects are remembered.
	maxProjects = 1 << 16
	// anyTimeout stands for no queue timeout.
	anyTimeout = 4 * time.Minute
)

// Behind is how long after its arrival the turn of a job is that has run for so long. before is what the jobs of its project
// are expected to take that were there when it came.
func Behind(expected, run, before, queueTimeout time.Duration) time.Duration {
	if queueTimeout <= 0 {
		queueTimeout = anyTimeout
	}
	most := patience * float64(queueTimeout)
	return time.Duration(min(ageing*float64(max(expected, run))+float64(before), most))
}

// mean is a mean of logarithms of seconds: one very long job moves it little.
type mean struct{ jobs, log float64 }

func (m mean) with(log float64) mean {
	m.jobs = min(m.jobs+1, memory)
	m.log += (log - m.log) / m.jobs
	return m
}

// Lengths knows how long the jobs of each project take on cores. P names a project.
// The zero value knows nothing.
type Lengths[P comparable] struct {
	all mean
	// When young is full it becomes old, and what was old is forgotten.
	young, old map[P]mean
}

// Learn takes in a job that ended.
func (l *Lengths[P]) Learn(project P, took time.Duration) {
	log := math.Log(max(took, time.Millisecond).Seconds())
	l.all = l.all.with(log)
	if _, young := l.young[project]; l.young == nil || !young && len(l.young) >= maxProjects/2 {
		l.old, l.young = l.young, map[P]mean{}
	}
	l.young[project] = l.of(project).with(log)
}

func (l *Lengths[P]) of(project P) mean {
	if m, ok := l.young[project]; ok {
		return m
	}
	return l.old[project]
}

// Expected is how long a job of a project takes. told is what its sender says, or 0; it
// counts for a project whose jobs are not known here.
func (l *Lengths[P]) Expected(project P, told time.Duration) time.Duration {
	m := l.of(project)
	if m.jobs == 0 && told > 0 {
		return told
	}
	if l.all.jobs == 0 {
		return 0
	}
	log := (m.jobs*m.log + trust*l.all.log) / (m.jobs + trust)
	return time.Duration(math.Exp(log) * float64(time.Second))
}
