// Package order decides which of several waiting jobs of equal priority gets the next
// free core: roughly, the shortest expected job first. It more than halves the mean
// wait, because a long job no longer delays all jobs behind it.
//
// Jobs are served in the order of their arrival time plus Delay. Delay grows with a job's expected
// duration and with the work of its project that is already there, so a project that floods the server
// yields to other projects. Delay is capped at a share of the queue timeout, so no job starves. A job
// that has run longer than expected counts as that long: with heavy-tailed durations it will probably
// run on for long (Nuyens and Wierman, The foreground-background queue, 2008).
package order

import (
	"math"
	"time"
)

const (
	// delayFactor is the delay of a job's turn, in seconds, for each second of
	// its expected duration.
	delayFactor = 10
	// maxDelayShare is the maximum of Delay, as a share of the queue timeout.
	maxDelayShare = 0.9
	// averagedJobs is the number of jobs over which a mean duration is averaged.
	averagedJobs = 30
	// priorJobs is the weight of the mean over all projects, in jobs of the project.
	priorJobs = 0.5
	// comparedJobs is the number of jobs over which the errors of expected durations are averaged. Until half of them have
	// ended, a project's own jobs are trusted more than its senders.
	comparedJobs = 100
	// maxProjects bounds the projects whose durations are remembered.
	maxProjects = 1 << 16
	// defaultTimeout replaces a missing queue timeout.
	defaultTimeout = 4 * time.Minute
)

// Delay returns the delay that is added to a job's arrival time to get its turn. expected is the job's expected duration,
// run the time it has run so far, and before the expected duration of its project's jobs that were present at its arrival.
func Delay(expected, run, before, queueTimeout time.Duration) time.Duration {
	if queueTimeout <= 0 {
		queueTimeout = defaultTimeout
	}
	most := maxDelayShare * float64(queueTimeout)
	return time.Duration(min(delayFactor*float64(max(expected, run))+float64(before), most))
}

// mean is a moving mean of the logarithms of durations in seconds, so one very long job changes it little.
type mean struct{ jobs, log float64 }

func (m mean) with(log float64) mean {
	m.jobs = min(m.jobs+1, averagedJobs)
	m.log += (log - m.log) / m.jobs
	return m
}

// Lengths learns the mean duration of each project's jobs, in core time, and the errors of the durations that senders
// expect: a sender can know more about a job than the mean of its project shows. P identifies a project. The zero value is ready to use.
type Lengths[P comparable] struct {
	all mean
	// Mean squared errors of the logarithm of expected durations: of those learned from the project's own jobs, and of those
	// that senders sent. both is the number of jobs that had both.
	ownError, sentError, both float64
	// Two generations bound the memory: when young is full, it replaces old.
	young, old map[P]mean
}

// Learn adds the duration of a job that ended. sent is as in Expected.
func (l *Lengths[P]) Learn(project P, took, sent time.Duration) {
	log := logOf(took)
	if m := l.of(project); m.jobs > 0 && sent > 0 {
		l.both = min(l.both+1, comparedJobs)
		own, other := l.own(m)-log, logOf(sent)-log
		l.ownError += (own*own - l.ownError) / l.both
		l.sentError += (other*other - l.sentError) / l.both
	}
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

// Expected returns the expected duration of a project's next job. sent is the duration that
// the sender expects, or 0. It is used for a project without jobs so far, and for all projects if the recent errors of
// senders are smaller than those of the projects' means.
func (l *Lengths[P]) Expected(project P, sent time.Duration) time.Duration {
	m := l.of(project)
	if sent > 0 && (m.jobs == 0 || l.both >= comparedJobs/2 && l.sentError < l.ownError) {
		return sent
	}
	if l.all.jobs == 0 {
		return 0
	}
	return time.Duration(math.Exp(l.own(m)) * float64(time.Second))
}

// own returns the logarithm of the expected duration, as learned from the project's own jobs.
func (l *Lengths[P]) own(m mean) float64 {
	return (m.jobs*m.log + priorJobs*l.all.log) / (m.jobs + priorJobs)
}

func logOf(d time.Duration) float64 { return math.Log(max(d, time.Millisecond).Seconds()) }
