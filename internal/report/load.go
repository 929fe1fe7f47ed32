package report

import (
	"fmt"
	"math"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

const (
	// maxCores bounds the cores of one upstream that are believed.
	maxCores = 1 << 20
	// maxCount bounds the gauges and counters that are believed. It is far above
	// all that a server can count, and far below where a float64 loses units.
	maxCount = 1e12
)

// figures are the sums of one upstream's metrics at one instant, by figure and priority. A
// histogram or a summary has two, of sumSuffix and countSuffix.
type figures map[string][selection.Priorities]float64

// What the name of a histogram has behind it, and its figure.
const (
	sumSuffix   = "_sum"
	countSuffix = "_count"
)

// add adds a value to a figure. One without a priority is low.
func (f figures) add(figure, priority string, value float64) {
	sums := f[figure]
	p, _ := selection.ParsePriority(priority)
	sums[p] += value
	f[figure] = sums
}

func (f figures) has(figure string) bool {
	_, ok := f[figure]
	return ok
}

// loadOf reads the upstream's load from figures, and the total of its waits in seconds, from
// which means are taken. Without running and stalled there is no report: a 0 for one of them
// would draw all jobs to an upstream that only lacks the metric.
func loadOf(f figures, m metrics) (r pool.Report, wait total, err error) {
	if r.Stalled, err = levels(f, m.stalled); err != nil {
		return r, wait, err
	}
	if r.Running, err = levels(f, m.running); err != nil {
		return r, wait, err
	}
	if cores := sum(f, m.cores); cores > 0 && cores <= maxCores {
		r.Cores = int(math.Ceil(cores)) // a share of a core still runs one joblet
	}
	r.CoresBusy = sum(f, m.coresBusy)
	r.Completed = sum(f, m.completed)
	r.Failed = sum(f, m.failed)
	wait = totalOf(f, m.wait)
	if wait.count > 0 {
		r.Begun = wait.count
	}
	return r, wait, nil
}

// levels returns the sums of a metric by priority, to scale. No metric is 0. One that is
// missing, or has a value that is no count, is an error.
func levels(f figures, m metric) (sums [selection.Priorities]float64, err error) {
	switch sums = f[m.figure]; {
	case m.name == "":
		return sums, nil
	case !f.has(m.figure) && (f.has(m.figure+sumSuffix) || f.has(m.figure+countSuffix)):
		return sums, fmt.Errorf("metric %v is a histogram or a summary, not a number", m)
	case !f.has(m.figure):
		return sums, fmt.Errorf("metric %v is missing", m)
	}
	for p := range sums {
		if sums[p] *= m.scale; !(sums[p] >= 0 && sums[p] <= maxCount) {
			return sums, fmt.Errorf("metric %v is %v, not between 0 and %g", m, sums[p], float64(maxCount))
		}
	}
	return sums, nil
}

// sum returns the sum of a metric over all its labels; -1 is unknown.
func sum(f figures, m metric) float64 {
	levels, err := levels(f, m)
	if m.name == "" || err != nil {
		return -1
	}
	return levels[selection.Low] + levels[selection.High]
}

// total is how often something was observed since an upstream started, and the
// sum of what was observed.
type total struct{ sum, count float64 }

var unknown = total{sum: math.NaN(), count: math.NaN()}

// totalOf returns the totals of a metric over all its labels, to scale. No metric is one that is always 0.
func totalOf(f figures, m metric) total {
	switch {
	case m.name == "":
		return total{}
	case !f.has(m.figure + sumSuffix), !f.has(m.figure + countSuffix):
		return unknown
	}
	sums, counts := f[m.figure+sumSuffix], f[m.figure+countSuffix]
	return total{
		sum:   (sums[selection.Low] + sums[selection.High]) * m.scale,
		count: counts[selection.Low] + counts[selection.High],
	}
}

// mean returns the mean of what was observed since before. It is NaN when that
// was nothing, when either total is unknown, or when the upstream has restarted
// and counts anew.
func (t total) mean(before total) float64 {
	sum, count := t.sum-before.sum, t.count-before.count
	if !(count > 0) || !(sum >= 0) || math.IsInf(sum, 0) || math.IsInf(count, 0) {
		return math.NaN()
	}
	return sum / count
}
