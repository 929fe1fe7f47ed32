package capacity

import (
	"math"
	"time"
)

// Load is what a fleet was asked to do, step by step: how many jobs came, and how many
// cores they needed, which may be more than there were. The zero value is not ready.
type Load struct {
	step  time.Duration
	cores []float64 // in the mean of each step
	jobs  []float64 // in each step
}

// maxSteps bounds memory: a load that is longer has longer steps.
const maxSteps = 1 << 17

// NewLoad is a load without a job, in steps of that length.
func NewLoad(step time.Duration) *Load { return &Load{step: step} }

// Add adds a job that arrives at a time since the start of the load, and needs one core
// for the time work.
func (l *Load) Add(at, work time.Duration) {
	l.reach(at)
	l.jobs[at/l.step]++
	l.spread(at, work)
}

// spread adds one core from an instant on, for the time work.
func (l *Load) spread(at, work time.Duration) {
	end := at + work
	for at < end {
		i := int(at / l.step)
		if i >= maxSteps {
			return // no job arrives so late
		}
		if i >= len(l.cores) {
			l.cores = append(l.cores, 0)
		}
		next := min(end, time.Duration(i+1)*l.step)
		l.cores[i] += (next - at).Seconds() / l.step.Seconds()
		at = next
	}
}

// reach makes room for jobs that arrive at an instant.
func (l *Load) reach(at time.Duration) {
	for at/l.step >= maxSteps {
		l.step *= 2
		l.cores, l.jobs = halved(l.cores, 0.5), halved(l.jobs, 1)
	}
	for int(at/l.step) >= len(l.jobs) {
		l.jobs = append(l.jobs, 0)
	}
	for len(l.cores) < len(l.jobs) {
		l.cores = append(l.cores, 0)
	}
}

// halved draws pairs together.
func halved(values []float64, factor float64) []float64 {
	half := make([]float64, (len(values)+1)/2)
	for i, v := range values {
		half[i/2] += factor * v
	}
	return half
}

// arrivals is how many steps there are until the last job has arrived. What runs on
// after that is no load to be ready for.
func (l *Load) arrivals() int { return len(l.jobs) }

// minutes are the means over each minute, one for each step that ends one. A load
// that is shorter has one of all.
func (l *Load) minutes() []Fill {
	steps := l.arrivals()
	if steps == 0 {
		return nil
	}
	width := min(max(1, int(math.Round(float64(time.Minute)/float64(l.step)))), steps)
	seconds := float64(width) * l.step.Seconds()
	var all []Fill
	jobs, cores := 0.0, 0.0
	for i := range steps {
		jobs, cores = jobs+l.jobs[i], cores+l.cores[i]
		if i >= width {
			jobs, cores = jobs-l.jobs[i-width], cores-l.cores[i-width]
		}
		if i >= width-1 {
			all = append(all, Fill{
				Seconds: float64(i+1-width) * l.step.Seconds(), JobsPerSecond: max(0, jobs) / seconds, Cores: max(0, cores) / float64(width),
			})
		}
	}
	return all
}

// wait is the longest wait of a job in a fleet with these cores, in seconds.
func (l *Load) wait(cores float64) float64 {
	left, most := 0.0, 0.0 // core-seconds
	for _, needed := range l.cores[:l.arrivals()] {
		left = max(0, left+(needed-cores)*l.step.Seconds())
		most = max(most, left)
	}
	return most / cores
}

// Recorder keeps the load of the last hour, as it is seen from moment to moment.
type Recorder struct {
	start time.Time // of the present step
	steps []seen
	sum   seen // of the present step
}

// seen is one step's means, and of how many moments they are.
type seen struct{ cores, jobs, moments float64 }

const (
	recordStep  = 10 * time.Second
	recordSteps = 360
)

// Note notes how many cores are needed at an instant, and how many jobs end each
// second. It is called about once a second.
func (r *Recorder) Note(now time.Time, cores, jobsPerSecond float64) {
	if r.start.IsZero() {
		r.start = now
	}
	for now.Sub(r.start) >= recordStep {
		if r.sum.moments == 0 && len(r.steps) > 0 { // nobody looked: it was as before
			r.sum = r.steps[len(r.steps)-1]
		}
		r.steps = append(r.steps, r.sum)
		r.steps = r.steps[max(0, len(r.steps)-recordSteps):]
		r.sum = seen{}
		if r.start = r.start.Add(recordStep); now.Sub(r.start) > recordSteps*recordStep {
			*r = Recorder{start: now} // the process stood still for an hour
		}
	}
	r.sum.cores += cores
	r.sum.jobs += jobsPerSecond
	r.sum.moments++
}

// Load is what was seen, and when it begins.
func (r *Recorder) Load() (l *Load, begin time.Time) {
	l = NewLoad(recordStep)
	for _, s := range r.steps {
		moments := max(1, s.moments)
		l.cores = append(l.cores, s.cores/moments)
		l.jobs = append(l.jobs, s.jobs/moments*recordStep.Seconds())
	}
	return l, r.start.Add(-time.Duration(len(r.steps)) * recordStep)
}
