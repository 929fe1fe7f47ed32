package selection

import (
	"math"
	"slices"
)

// A figure that an upstream does not report is estimated as the median of the others', which no single upstream can
// move far.

// assumedLoad is the assumed number of jobs per core at the average upstream if fewer than half of the upstreams
// report. Then an upstream counts as full if this sidecar has over a seventh more jobs there than at the average
// upstream.
const assumedLoad = 0.7

// loads estimates how many jobs are at an upstream, also without a fresh report.
type loads struct {
	known   int     // views with a fresh report
	perCore float64 // median of the jobs per core at these views; assumedLoad if too few views have a fresh report
	own     float64 // mean number of this sidecar's jobs per unit of weight at these views, or at all views if blind
}

// blind reports whether fewer than half of n views have a fresh report.
func (l loads) blind(n int) bool { return 2*l.known < n }

func newLoads(views []View) loads {
	l := loads{perCore: assumedLoad}
	for i := range views {
		if views[i].Fresh {
			l.known++
		}
	}
	if l.known == len(views) {
		return l // every view has a fresh report: no median is needed
	}
	blind, jobs, weights := l.blind(len(views)), 0.0, 0.0
	for i := range views {
		if v := &views[i]; v.Fresh || blind {
			jobs += v.InFlight
			weights += max(v.Weight, leastWeight)
		}
	}
	l.own = jobs / weights
	if !blind {
		l.perCore, _ = median(views, func(v *View) float64 {
			if !v.Fresh {
				return math.NaN()
			}
			return v.Jobs / v.cores()
		})
	}
	return l
}

// jobs estimates the jobs at v. Without a fresh report it is the median of the
// others, scaled up if this sidecar has more jobs at v than elsewhere.
func (l loads) jobs(v *View) float64 {
	if v.Fresh {
		return v.Jobs
	}
	more := max(1, (v.OwnLoad()+1)/(l.own+1))
	return max(v.Jobs, v.InFlight, l.perCore*v.cores()*more)
}

// maxMedianViews is the maximum number of views whose median is computed, so that nothing is allocated. If there are
// more views, evenly spaced ones are used.
const maxMedianViews = 64

// median returns the lower median of the views' values, and the number of
// values. Negative, infinite and NaN values are left out.
func median(views []View, value func(*View) float64) (m float64, known int) {
	var values [maxMedianViews]float64
	step := (len(views) + maxMedianViews - 1) / maxMedianViews
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
