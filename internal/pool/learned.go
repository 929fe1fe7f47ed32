package pool

import (
	"math"
	"time"
)

const (
	// firstBytePrior is the expected time to first byte before any job: that of the median job of the thesis.
	firstBytePrior = 250 * time.Millisecond
	// shrinkFirstBytes is the weight of the mean of all projects in the estimate for one project: as much as this
	// number of the project's observations.
	shrinkFirstBytes = 2
	// recentOfProject is the number of observations over which a project's times are averaged, small so that averages
	// follow a project that grows. recentOfAll is the number for the averages of all jobs.
	recentOfProject, recentOfAll = 5, 100
	// learnedProjects is the maximum number of project states: about 10 MB, and 4 MB more in a large pool.
	learnedProjects = 1 << 16
)

// average is a moving average. For a share, the values are ones and zeros.
type average struct {
	mean float64
	n    float64 // number of values so far
}

// observe adds a value to the average of about the last most values.
func (a *average) observe(value, most float64) {
	a.n++
	a.mean += (value - a.mean) / min(a.n, most)
}

// logOf returns the logarithm of a time in seconds. Times span orders of magnitude, so logarithms are averaged.
func logOf(d time.Duration) float64 { return math.Log(max(d.Seconds(), 0.001)) }

// learn adds a time to the average of all jobs and to that of a project.
func (all *average) learn(project *average, d time.Duration, last float64) {
	all.observe(logOf(d), recentOfAll)
	project.observe(logOf(d), last)
}

// expected returns the expected time for a project in seconds: a mean of the project's average and the average of all
// jobs, which has the weight of prior observations.
func (all *average) expected(project average, prior float64) float64 {
	return math.Exp((project.mean*project.n + all.mean*prior) / (project.n + prior))
}

// fetchModel learns the fetch time as a function of the size of the data: a startup time plus a time for each byte.
// Data of unknown size has one common fetch time.
//
// Times vary so much that the mean of a few jobs is unreliable. So the model follows the median: each observation moves
// the larger of the two parts up or down by a step of bounded size, however far off the estimate is. No single upstream
// or job can move it far.
type fetchModel struct{ startup, perByte, unsized float64 } // in seconds; perByte in seconds per byte

const (
	// fetchStep is the largest step of one observation, as a factor.
	fetchStep = 1.1
	// The initial estimates are 0.1 s to start, 25 MB/s, and 2 s for data of unknown size. Each has a minimum and a
	// maximum.
	startupPrior, startupLeast, startupMost = 0.1, 0.001, 10
	perBytePrior, perByteLeast, perByteMost = 1 / 25e6, 1e-10, 1e-4
	unsizedPrior, unsizedLeast, unsizedMost = 2, 0.001, 3600
)

func newFetchModel() *fetchModel {
	return &fetchModel{startup: startupPrior, perByte: perBytePrior, unsized: unsizedPrior}
}

// expected returns the time to fetch data of that size, in seconds; 0 means that the size is unknown.
func (f *fetchModel) expected(bytes float64) float64 {
	if bytes == 0 {
		return f.unsized
	}
	return f.startup + f.perByte*bytes
}

// observe records that fetching data of that size delayed a response by took. usual is the usual time to first byte
// without a fetch. The shorter the fetch is compared with it, the less reliable the observation is, and the smaller the
// step.
func (f *fetchModel) observe(bytes, took, usual float64) {
	want := f.expected(bytes)
	step := math.Pow(fetchStep, want/(want+usual))
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
	// leastDone is the minimum to which the count of completions decays: that of one job after ten half-lives. Without
	// it, the expected wait at an upstream that is busy and completes nothing for a day would be infinite.
	leastDone = 1e-3
)

// rate learns how many jobs a busy core completes per second: completions divided by busy core-seconds, both decaying
// with time. Idle cores do not count, so an idle upstream does not look slow.
type rate struct {
	done, busy    float64
	at            time.Time // of the last observation
	lastCompleted float64
	lastBusy      float64
}

// observe records an upstream's counter of completed jobs and its busy cores.
func (r *rate) observe(at time.Time, completed, busy float64) {
	dt := at.Sub(r.at).Seconds()
	if done := completed - r.lastCompleted; !r.at.IsZero() && done >= 0 && dt > 0 { // not the first report since the upstream started
		fade := math.Exp2(-dt / rateMemory.Seconds())
		r.done = max(r.done*fade, min(r.done, leastDone)) + done
		r.busy = r.busy*fade + (busy+r.lastBusy)/2*dt
	}
	r.at, r.lastCompleted, r.lastBusy = at, completed, busy
}

// perCore returns completions per second and busy core; 0 is unknown.
func (r *rate) perCore() float64 {
	if r.busy <= 0 || r.done <= 0 {
		return 0
	}
	return r.done / r.busy
}

// peakEWMA is a moving average that jumps up to a larger value at once and falls with a half-life of ten seconds.
type peakEWMA struct {
	value float64
	at    time.Time
}

func (e *peakEWMA) observe(now time.Time, v float64) {
	fade := math.Exp2(-now.Sub(e.at).Seconds() / 10)
	e.at = now
	e.value = math.Max(v, e.value*fade+v*(1-fade))
}
