package pool

import (
	"math"
	"time"
)

const (
	// fetchPrior is the fetch time expected before any was seen.
	fetchPrior = 2 * time.Second
	// fetchShrink is how many observations the pool-wide mean counts for
	// while a project has few of its own.
	fetchShrink = 2
	// fetchGain bounds how little a new observation weighs, so that a
	// project that grows is followed.
	fetchGain = 0.2
	// learnedProjects bounds the memory for fetch times: about 3 MB.
	learnedProjects = 1 << 16
)

// fetches learns how long projects take to fetch. Fetch times span decades,
// so the means are taken of their logarithms.
type fetches struct {
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

func newFetches() *fetches {
	return &fetches{
		projects: newGenerations[logMean](learnedProjects),
		all:      logMean{mean: math.Log(fetchPrior.Seconds()), n: 1},
	}
}

// observe learns from one fetch of project that took d.
func (f *fetches) observe(project uint64, d time.Duration) {
	s := math.Max(d.Seconds(), 0.001)
	f.all = f.all.with(s, 0.01)
	m, _ := f.projects.get(project)
	f.projects.put(project, m.with(s, fetchGain))
}

// expected is the expected fetch time of project, in seconds.
func (f *fetches) expected(project uint64) float64 {
	m, ok := f.projects.get(project)
	if !ok {
		return math.Exp(f.all.mean)
	}
	return math.Exp((m.mean*m.n + f.all.mean*fetchShrink) / (m.n + fetchShrink))
}
