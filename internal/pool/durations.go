package pool

import (
	"math"
	"time"
)

const (
	// fetchPrior and answerPrior are what is expected before anything was seen.
	fetchPrior  = 2 * time.Second
	answerPrior = 250 * time.Millisecond // the thesis's median job
	// shrink is how many observations the pool-wide mean counts for while a
	// project has few of its own.
	shrink = 2
	// gain bounds how little a new observation weighs, so that a project that
	// grows is followed.
	gain = 0.2
	// learnedProjects bounds the memory for one kind of duration: about 3 MB.
	learnedProjects = 1 << 16
)

// durations learns how long something takes, by project. Durations span
// decades, so the means are taken of their logarithms.
type durations struct {
	projects *generations[logMean]
	all      logMean
}

// logMean is a running mean of logarithms of seconds.
type logMean struct {
	mean float64
	n    float64
}

func (m logMean) with(seconds, least float64) logMean {
	m.n++
	m.mean += math.Max(1/m.n, least) * (math.Log(seconds) - m.mean)
	return m
}

func newDurations(prior time.Duration) *durations {
	return &durations{
		projects: newGenerations[logMean](learnedProjects),
		all:      logMean{mean: math.Log(prior.Seconds()), n: 1},
	}
}

// observe learns that it took d for project.
func (f *durations) observe(project uint64, d time.Duration) {
	s := math.Max(d.Seconds(), 0.001)
	f.all = f.all.with(s, 0.01)
	m, _ := f.projects.get(project)
	f.projects.put(project, m.with(s, gain))
}

// expected is how long it will take for project, in seconds.
func (f *durations) expected(project uint64) float64 {
	m, ok := f.projects.get(project)
	if !ok {
		return math.Exp(f.all.mean)
	}
	return math.Exp((m.mean*m.n + f.all.mean*shrink) / (m.n + shrink))
}
