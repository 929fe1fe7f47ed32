package pool

import (
	"math"
	"time"
)

const (
	// answerPrior is what is expected before anything was seen.
	answerPrior = 250 * time.Millisecond // the thesis's median job
	// shrinkAnswers is the weight of the pool-wide mean, in observations of the project.
	shrinkAnswers = 2
	// lastAnswers is the number of a project's observations that count, so that a project that grows is
	// followed; lately is the same for all jobs.
	lastAnswers, lately = 5, 100
	// learnedProjects bounds the projects that are remembered: about 10 MB, and 4 MB more
	// where a project has near upstreams.
	learnedProjects = 1 << 16
)

// average is of the last few values; a share is that of ones and zeros.
type average struct {
	mean float64
	n    float64 // values so far
}

// observe takes in a value, as one of so many at most.
func (a *average) observe(value, most float64) {
	a.n++
	a.mean += (value - a.mean) / min(a.n, most)
}

// logOf is the logarithm of a time in seconds. Times span decades, so averages are of their logarithms.
func logOf(d time.Duration) float64 { return math.Log(max(d.Seconds(), 0.001)) }

// learn takes in that it took d for the project with that average, whose last few count, and into that of all.
func (all *average) learn(project *average, d time.Duration, last float64) {
	all.observe(logOf(d), lately)
	project.observe(logOf(d), last)
}

// expected is how long it will take for the project with that average, in seconds. The mean of all counts as so
// many observations.
func (all *average) expected(project average, prior float64) float64 {
	return math.Exp((project.mean*project.n + all.mean*prior) / (project.n + prior))
}

// fetchModel learns how long a fetch takes from the size of the data: a
// start-up time plus a time for each byte. Data of unknown size has one time for all.
//
// Job lengths vary so much that a mean over few jobs says nothing. So it follows
// the median: an observation moves the larger of the two parts up or down by a
// fixed step, however far off it is. No single upstream or job can move it far.
type fetchModel struct{ startup, perByte, unsized float64 } // seconds

const (
	// fetchStep is the largest step of one observation, as a factor.
	fetchStep = 1.1
	// The parts begin at 0.1 s, 25 MB/s and 2 s, and stay within these bounds.
	startupPrior, startupLeast, startupMost = 0.1, 0.001, 10
	perBytePrior, perByteLeast, perByteMost = 1 / 25e6, 1e-10, 1e-4
	unsizedPrior, unsizedLeast, unsizedMost = 2, 0.001, 3600
)

func newFetchModel() *fetchModel {
	return &fetchModel{startup: startupPrior, perByte: perBytePrior, unsized: unsizedPrior}
}

// expected is how long it takes to fetch so many bytes, in seconds; 0 is not known.
func (f *fetchModel) expected(bytes float64) float64 {
	if bytes == 0 {
		return f.unsized
	}
	return f.startup + f.perByte*bytes
}

// observe learns that a job took that much longer to begin its answer because it had to
// fetch so many bytes; 0 is not known. answer is how long such an answer takes without.
// Where the fetch is short beside it, the observation says less, and the step is smaller.
func (f *fetchModel) observe(bytes, took, answer float64) {
	want := f.expected(bytes)
	step := math.Pow(fetchStep, want/(want+answer))
	if took < want {
		step = 1 / step
	}
	switch {
	case bytes == 0:
		f.unsized = min(max(f.unsized*step, unsizedLeast), unsizedMost)
	case 2*f.startup > want:
		f.startup = min(max(f.startup*step, startupLeast), startupMost)
	default:
		f.perByte = min(max(f.perByte*step, perByteLeast), perByteMost)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

const (
	// rateMemory is the half-life of what is known about completion rates.
	rateMemory = time.Minute
	// leastDone is how far completions fade: ten half-lives. Where an upstream is busy and completes
	// nothing for a day, the wait there would be infinite.
	leastDone = 1e-3
)

// rate learns how many jobs a busy core completes per second: completions
// over core-seconds, both fading. Dividing by the cores that were in fact busy
// keeps a quiet upstream from looking like a slow one.
type rate struct {
	done, busy    float64
	at            time.Time // of the last observation, with what it told
	lastCompleted float64
	lastBusy      float64
}

// observe takes an upstream's counter of completions and the cores that are busy.
func (r *rate) observe(at time.Time, completed, busy float64) {
	dt := at.Sub(r.at).Seconds()
	if done := completed - r.lastCompleted; !r.at.IsZero() && done >= 0 && dt > 0 { // not the first since it started
		fade := math.Exp2(-dt / rateMemory.Seconds())
		r.done = max(r.done*fade, min(r.done, leastDone)) + done
		r.busy = r.busy*fade + (busy+r.lastBusy)/2*dt
	}
	r.at, r.lastCompleted, r.lastBusy = at, completed, busy
}

// perCore is completions per second and busy core; 0 while unknown.
func (r *rate) perCore() float64 {
	if r.busy <= 0 || r.done <= 0 {
		return 0
	}
	return r.done / r.busy
}

// peakEWMA is a moving average that jumps up to a peak at once and comes
// down with a half-life of ten seconds.
type peakEWMA struct {
	value float64
	at    time.Time
}

func (e *peakEWMA) observe(now time.Time, v float64) {
	fade := math.Exp2(-now.Sub(e.at).Seconds() / 10)
	e.at = now
	e.value = math.Max(v, e.value*fade+v*(1-fade))
}
