package selection

import (
	"math"
	"slices"
)

// What an upstream does not report is estimated as the median of the others,
// which no single upstream can move far.

// loads estimates how many jobs are at an upstream, also without a fresh report.
type loads struct {
	known   int     // views with a fresh report
	perCore float64 // their median of jobs per core
	own     float64 // their mean of this sidecar's own jobs
}

func newLoads(views []View) loads {
	var l loads
	for i := range views {
		if v := &views[i]; v.Fresh {
			l.known++
			l.own += v.InFlight
		}
	}
	if l.known == 0 || l.known == len(views) {
		return l // nobody needs a median
	}
	l.own /= float64(l.known)
	l.perCore, _ = median(views, func(v *View) float64 {
		if !v.Fresh {
			return math.NaN()
		}
		return v.Jobs / v.cores()
	})
	return l
}

// jobs is how many jobs are at v. Where no fresh report says, it is the median
// of the others, more where this sidecar has more jobs than it has elsewhere.
func (l loads) jobs(v *View) float64 {
	if v.Fresh {
		return v.Jobs
	}
	more := max(1, (v.InFlight+1)/(l.own+1))
	return max(v.Jobs, v.InFlight, l.perCore*v.cores()*more)
}

// medianOf is the maximum number of views whose median is computed, so
// that nothing is allocated. Of more views, a sample of at most this size,
// at equal distances, is used.
const medianOf = 64

// median returns the lower median of the views' values, and the number of
// values. Negative, infinite and NaN values are left out.
func median(views []View, value func(*View) float64) (m float64, known int) {
	var values [medianOf]float64
	step := (len(views) + medianOf - 1) / medianOf
	for i := 0; i < len(views); i += step {
		if x := value(&views[i]); x >= 0 && !math.IsInf(x, 1) {
			values[known] = x
			known++
		}
	}
	if known == 0 {
		return 0, 0
	}
	slices.Sort(values[:known])
	return values[(known-1)/2], known
}
