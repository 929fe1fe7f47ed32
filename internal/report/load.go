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

// figures are the metrics of one upstream at one instant.
type figures interface {
	// levels returns the sums of a metric by priority. A value without a priority
	// is low. A metric that is missing, or has a value that is no count, is an error.
	levels(m metric) ([selection.Priorities]float64, error)
	// total returns a histogram's or summary's totals over all its labels.
	total(m metric) total
}

// loadOf reads the upstream's load from figures, and the totals from which means
// are taken. Without running and stalled there is no report: a 0 for one of them
// would draw all jobs to an upstream that only lacks the metric.
func loadOf(f figures, m metrics) (r pool.Report, t totals, err error) {
	if r.Stalled, err = levels(f, m.stalled); err != nil {
		return r, t, err
	}
	if r.Running, err = levels(f, m.running); err != nil {
		return r, t, err
	}
	if cores := sum(f, m.cores); cores <= maxCores {
		r.Cores = int(math.Ceil(cores)) // a share of a core still runs one joblet
	}
	r.CoresBusy = orNegative(sum(f, m.coresBusy))
	r.Completed = orNegative(sum(f, m.completed))
	r.Failed = orNegative(sum(f, m.failed))
	t = totals{
		wait:      totalOf(f, m.wait),
		execution: totalOf(f, m.execution),
		response:  totalOf(f, m.response),
	}
	return r, t, nil
}

// levels returns the sums of a metric by priority, to scale. No metric is 0.
func levels(f figures, m metric) (sums [selection.Priorities]float64, err error) {
	if m.name == "" {
		return sums, nil
	}
	if sums, err = f.levels(m); err != nil {
		return sums, err
	}
	for p := range sums {
		sums[p] *= m.scale
		if err := checkCount(m.name, sums[p]); err != nil {
			return sums, err
		}
	}
	return sums, nil
}

// sum returns the sum of a metric over all its labels; NaN is unknown.
func sum(f figures, m metric) float64 {
	if m.name == "" {
		return math.NaN()
	}
	levels, err := levels(f, m)
	if err != nil {
		return math.NaN()
	}
	return levels[selection.Low] + levels[selection.High]
}

// totalOf returns the totals of a metric, to scale.
func totalOf(f figures, m metric) total {
	if m.name == "" {
		return unknown
	}
	t := f.total(m)
	t.sum *= m.scale
	return t
}

// checkCount says what is wrong with a count.
func checkCount(name string, value float64) error {
	if !(value >= 0 && value <= maxCount) {
		return fmt.Errorf("metric %s is %v, not between 0 and %g", name, value, float64(maxCount))
	}
	return nil
}

// orNegative turns an unknown value into -1, which is unknown in a pool.Report.
func orNegative(x float64) float64 {
	if math.IsNaN(x) {
		return -1
	}
	return x
}

// total is how often something was observed since an upstream started, and the
// sum of what was observed.
type total struct{ sum, count float64 }

var unknown = total{sum: math.NaN(), count: math.NaN()}

func (t *total) add(sum, count float64) {
	t.sum += sum
	t.count += count
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

// totals are the times, in seconds, from which a report's means are taken.
type totals struct{ wait, execution, response total }

func unknownTotals() totals { return totals{unknown, unknown, unknown} }

// since returns the mean wait and the mean response time since before. Where an
// upstream has no response times, they are wait plus execution.
func (t totals) since(before totals) (wait, response float64) {
	wait = t.wait.mean(before.wait)
	if t.response.count >= 0 {
		return wait, t.response.mean(before.response)
	}
	return wait, wait + t.execution.mean(before.execution)
}
