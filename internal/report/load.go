package report

import (
	"cmp"
	"fmt"
	"math"

	"example.org/pilotfish/pkg/selection"
)

// maxCount bounds the gauges and counters that are believed. It is far above
// all that a server can count, and far below where a float64 loses units.
const maxCount = 1e12

// figures are the sums of one upstream's metrics at one instant, by figure.
type figures map[string]figure

// figure is a sum by priority.
type figure struct {
	sums       [selection.Priorities]float64
	byPriority bool  // its samples have a priority
	err        error // why it is unknown
}

// add adds a value to a figure. Without a priority it is low. NaN is no value: an engine that has none says so.
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

// levels returns the sums of a figure by priority, to scale. No metric is 0. One that is
// missing, or has a value that is no count, is an error.
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

// sum returns the sum of a figure over all its labels; -1 is unknown.
func sum(f figures, all metrics, figure string) float64 {
	levels, err := levels(f, all, figure)
	if all[figure].name == "" || err != nil {
		return -1
	}
	return levels[selection.Low] + levels[selection.High]
}

// total is the sum of what was observed since an upstream started, and how often that was; -1
// is unknown.
type total struct{ sum, count float64 }

var unknown = total{-1, -1}

// mean returns the mean of what was observed since before. It is NaN when that
// was nothing, when either total is unknown, or when the upstream has restarted
// and counts anew.
func (t total) mean(before total) float64 {
	sum, count := t.sum-before.sum, t.count-before.count
	if min(t.sum, t.count, before.sum, before.count) < 0 || count <= 0 || sum < 0 {
		return math.NaN()
	}
	return sum / count
}
