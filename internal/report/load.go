package report

import (
	"fmt"
	"math"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// maxCores bounds the cores that are believed of one upstream.
const maxCores = 1 << 20

// figures are the metrics of one upstream at one instant, by name.
type figures interface {
	// levels returns the sums of a metric by priority. What does not say its
	// priority is low. A metric that is missing, or that counts what cannot be
	// counted, is an error.
	levels(name string) ([selection.Priorities]float64, error)
	// total returns a histogram's or summary's totals over all its labels.
	total(name string) total
}

// loadOf reads what figures say of the upstream's load, and the totals from
// which means are taken. Without running and stalled there is no report:
// either at 0 would draw all jobs to an upstream that only fails to tell.
func loadOf(f figures, names Names) (r pool.Report, t totals, err error) {
	if r.Stalled, err = f.levels(names.Stalled); err != nil {
		return r, t, err
	}
	if r.Running, err = f.levels(names.Running); err != nil {
		return r, t, err
	}
	if cores := sum(f, names.Cores); cores <= maxCores {
		r.Cores = int(math.Ceil(cores)) // a share of a core still runs one joblet
	}
	r.CoresBusy = orNegative(sum(f, names.CoresBusy))
	r.Completed = orNegative(sum(f, names.Completed))
	t = totals{
		wait:      f.total(names.Wait),
		execution: f.total(names.Execution),
		response:  f.total(names.Response),
	}
	return r, t, nil
}

// sum returns the sum of a metric over all its labels; NaN is unknown.
func sum(f figures, name string) float64 {
	levels, err := f.levels(name)
	if err != nil {
		return math.NaN()
	}
	return levels[selection.Low] + levels[selection.High]
}

// maxCount bounds what is believed of a gauge or counter: far above all that
// a server can count, far below where a float64 loses units.
const maxCount = 1e12

// counted says what is wrong with a count.
func counted(name string, value float64) error {
	if !(value >= 0 && value <= maxCount) {
		return fmt.Errorf("metric %s is %v, not between 0 and %g", name, value, float64(maxCount))
	}
	return nil
}

// orNegative turns the unknown into what a pool.Report says for it.
func orNegative(x float64) float64 {
	if math.IsNaN(x) {
		return -1
	}
	return x
}
