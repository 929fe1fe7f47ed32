package report

import (
	"cmp"
	"fmt"
	"math"

	"example.org/pilotfish/pkg/selection"
)

// maxCount is the maximum value of a gauge or counter that is accepted. It is far above
// any real count, and far below the values for which a float64 is not exact.
const maxCount = 1e12

// figures are the values of one upstream's metrics at one time, by the name of the figure.
type figures map[string]figure

// figure is the sum of a metric's samples, by priority.
type figure struct {
	sums       [selection.Priorities]float64
	byPriority bool  // the samples have the label priority
	err        error // why it is unknown
}

// add adds a sample to a figure. Samples without a priority count as low. NaN is skipped: engines use it for a missing value.
func (f figures) add(name, priority string, value float64) {
	if math.IsNaN(value) {
		return
	}
	sum := f[name]
	p, known := selection.ParsePriority(priority)
	sum.sums[p] += value
	sum.byPriority = sum.byPriority || known
	f[name] = sum
}

// fail makes the figures of a metric unknown.
func (f figures) fail(all metrics, metric string, err error) {
	for name, m := range all {
		if m.name == metric {
			f[name] = figure{err: fmt.Errorf("metric %s: %w", metric, err)}
		}
	}
}

// levels returns the scaled sums of a figure by priority. They are 0 if no metric is configured. A
// metric that is missing, or whose value is not a valid count, is an error.
func levels(f figures, all metrics, figure string) (sums [selection.Priorities]float64, err error) {
	m := all[figure]
	if m.name == "" {
		return sums, nil
	}
	sum, there := f[figure]
	if sums = sum.sums; !there || sum.err != nil {
		return sums, cmp.Or(sum.err, fmt.Errorf("metric %v is missing, or NaN", m))
	}
	for p := range sums {
		if sums[p] *= m.scale; !(sums[p] >= 0 && sums[p] <= maxCount) {
			return sums, fmt.Errorf("metric %v is %v, not between 0 and %g", m, sums[p], float64(maxCount))
		}
	}
	return sums, nil
}

// sum returns the scaled sum of a figure over both priorities, or -1 if it is unknown.
func sum(f figures, all metrics, figure string) float64 {
	levels, err := levels(f, all, figure)
	if all[figure].name == "" || err != nil {
		return -1
	}
	return levels[selection.Low] + levels[selection.High]
}

// total is the sum and the count of a histogram or summary since the upstream started; -1
// means unknown.
type total struct{ sum, count float64 }

var unknown = total{-1, -1}

// mean returns the mean of the observations since before. It is NaN if there were
// none, if either total is unknown, or if the counters were reset by a restart.
func (t total) mean(before total) float64 {
	sum, count := t.sum-before.sum, t.count-before.count
	if min(t.sum, t.count, before.sum, before.count) < 0 || count <= 0 || sum < 0 {
		return math.NaN()
	}
	return sum / count
}
