package pool

import (
	"math"
	"time"
)

const (
	// answerPrior is the time to first byte that is expected at first: that of the thesis's median job.
	answerPrior = 250 * time.Millisecond
	// shrinkAnswers is the weight of the pool-wide mean, in observations of the project.
	shrinkAnswers = 2
	// lastAnswers is the number of a project's observations that count, so that averages follow a project that grows.
	// lately is the same for all jobs.
	lastAnswers, lately = 5, 100
	// learnedProjects is the maximum number of project states: about 10 MB, and 4 MB more in a large pool.
	learnedProjects = 1 << 16
)

// average is the moving average of some values. A share is the average of ones and zeros.
type average struct {
	mean float64
	n    float64 // values so far
}

// observe adds a value. It counts as one of the last most values.
func (a *average) observe(value, most float64) {
	a.n++
	a.mean += (value - a.mean) / min(a.n, most)
}

// logOf is the logarithm of a time in seconds. Times span orders of magnitude, so their logarithms are averaged.
func logOf(d time.Duration) float64 { return math.Log(max(d.Seconds(), 0.001)) }

// learn adds a time to the averages of a project and of all.
func (all *average) learn(project *average, d time.Duration, last float64) {
	all.observe(logOf(d), lately)
	project.observe(logOf(d), last)
}

// expected is the expected time for a project in seconds. The mean of all has the weight of prior observations.
func (all *average) expected(project average, prior float64) float64 {
	return math.Exp((project.mean*project.n + all.mean*prior) / (project.n + prior))
}

// fetchModel learns the fetch time as a function of the size of the data: a startup time plus a time for each byte. All data
// of unknown size has the same time.
//
// Times vary so much that the mean of few jobs means little. So the model follows the median: each observation moves the
// larger part up or down by a fixed step, however far off it is. No single upstream or job can move it far.
type fetchModel struct{ startup, perByte, unsized float64 } // seconds

const (
	// fetchStep is the largest step of one observation, as a factor.
	fetchStep = 1.1
	// The parts start at 0.1 s, 25 MB/s and 2 s, and stay within these bounds.
	startupPrior, startupLeast, startupMost = 0.1, 0.001, 10
	perBytePrior, perByteLeast, perByteMost = 1 / 25e6, 1e-10, 1e-4
	unsizedPrior, unsizedLeast, unsizedMost = 2, 0.001, 3600
)

func newFetchModel() *fetchModel {
	return &fetchModel{startup: startupPrior, perByte: perBytePrior, unsized: unsizedPrior}
}

// expected is the time to fetch data of that size, in seconds; 0 is an unknown size.
func (f *fetchModel) expected(bytes float64) float64 {
	if bytes == 0 {
		return f.unsized
	}
	return f.startup + f.perByte*bytes
}

// observe records that fetching data of that size delayed a response by took; 0 is an unknown size. answer is the usual time
// to first byte without a fetch. If the fetch is short beside it, the observation is unreliable and the step small.
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
	// rateMemory is the half-life of completion rates.
	rateMemory = time.Minute
	// leastDone is the minimum that completions fade to, after ten half-lives. Otherwise the wait at an upstream that is
	// busy and completes nothing for a day would be infinite.
	leastDone = 1e-3
)

// rate learns how many jobs a busy core completes per second: completions over core-seconds, both fading. Dividing by the
// cores that were busy keeps an idle upstream from looking slow.
type rate struct {
	done, busy    float64
	at            time.Time // of the last observation
	lastCompleted float64
	lastBusy      float64
}

// observe records an upstream's counter of completed jobs and its busy cores.
func (r *rate) observe(at time.Time, completed, busy float64) {
	dt := at.Sub(r.at).Seconds()
	if done := completed - r.lastCompleted; !r.at.IsZero() && done >= 0 && dt > 0 { // not the first since it started
		fade := math.Exp2(-dt / rateMemory.Seconds())
		r.done = max(r.done*fade, min(r.done, leastDone)) + done
		r.busy = r.busy*fade + (busy+r.lastBusy)/2*dt
	}
	r.at, r.lastCompleted, r.lastBusy = at, completed, busy
}

// perCore is completions per second and busy core; 0 is unknown.
func (r *rate) perCore() float64 {
	if r.busy <= 0 || r.done <= 0 {
		return 0
	}
	return r.done / r.busy
}

// peakEWMA is a moving average that rises to a peak at once and falls with a half-life of ten seconds.
type peakEWMA struct {
	value float64
	at    time.Time
}

func (e *peakEWMA) observe(now time.Time, v float64) {
	fade := math.Exp2(-now.Sub(e.at).Seconds() / 10)
	e.at = now
	e.value = math.Max(v, e.value*fade+v*(1-fade))
}
