package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"example.org/pilotfish/pkg/selection"
)

// What one upstream may say of itself. What lies beyond counts as unknown, and NaN,
// infinite and negative figures do too.
const (
	maxCores     = 1 << 16
	maxJobs      = 1e9 // jobs that run or joblets that are stalled
	maxCompleted = 1e15
	maxMean      = 30 * 24 * 3600 // seconds
	maxBytes     = 1e15           // of one project
	maxPace      = 1e6            // jobs per second and core
	// maxTimes is how many times the lower median of all upstreams the cores of one may
	// be, and the jobs that a core of it completes. The fleet may be of many sizes, but an
	// upstream with a wrong figure would draw the jobs of all others.
	maxTimes = 16
	// enoughPaces is how many upstreams must have a pace before one can be compared:
	// of two, the one that says too little cannot be told from the one that says too much.
	enoughPaces = 3
)

// plausibility is which figures of an upstream are believed.
type plausibility struct {
	report string  // what is wrong with the last report by itself; "" is nothing
	others string  // what is wrong with it beside those of the others
	cores  int     // by the report or by discovery; 0 is unknown
	pace   float64 // jobs that a busy core completes per second; 0 is unknown
}

// wrong says what is not believed; "" is nothing.
func (p *plausibility) wrong() string {
	if p.report != "" && p.others != "" {
		return p.report + ", " + p.others
	}
	return p.report + p.others
}

// sane returns the report with what cannot be taken for unknown, and says what that
// was. If the load is not known, known is false.
func (r Report) sane() (sane Report, known bool, wrong string) {
	var absurd []string
	blame := func(format string, value any) { absurd = append(absurd, fmt.Sprintf(format, value)) }
	known = saneLoad(r.Running) && saneLoad(r.Stalled)
	if !saneLoad(r.Running) {
		blame("%v jobs that run", r.Running)
	}
	if !saneLoad(r.Stalled) {
		blame("%v stalled joblets", r.Stalled)
	}
	if r.Cores < 0 || r.Cores > maxCores {
		blame("%d cores", r.Cores)
		r.Cores = 0
	}
	unknown := func(figure *float64, most, instead float64, format string) {
		if !(*figure <= most) { // NaN too
			if !math.IsNaN(*figure) {
				blame(format, *figure)
			}
			*figure = instead
		}
	}
	unknown(&r.CoresBusy, maxCores, -1, "%g busy cores")
	unknown(&r.Completed, maxCompleted, -1, "%g completed jobs")
	for _, mean := range []*float64{&r.Wait, &r.Response} {
		if *mean < 0 {
			blame("a mean of %g s", *mean)
			*mean = math.NaN()
		}
		unknown(mean, maxMean, math.NaN(), "a mean of %g s")
	}
	return r, known, strings.Join(absurd, ", ")
}

// saneLoad reports whether counts of jobs or joblets can be true.
func saneLoad(counts [selection.Priorities]float64) bool {
	return !slices.ContainsFunc(counts[:], func(n float64) bool { return !(n >= 0 && n <= maxJobs) })
}

// compare sets what is believed of each upstream's cores and pace, beside those of the
// others.
func (p *Pool) compare() {
	var cores, paces []float64
	for _, m := range p.set {
		if n := m.toldCores(); n > 0 {
			cores = append(cores, float64(n))
		}
		if pace := m.rate.perCore(); pace > 0 {
			paces = append(paces, pace)
		}
	}
	mostCores, mostPace := maxTimes*lowerMedian(cores), float64(maxPace)
	if len(paces) >= enoughPaces {
		mostPace = min(mostPace, maxTimes*lowerMedian(paces))
	}
	for _, m := range p.set {
		b := &m.believed
		b.others, b.cores, b.pace = "", m.toldCores(), m.rate.perCore()
		if float64(b.cores) > mostCores {
			b.others = fmt.Sprintf("%d cores, more than %d times as many as others", b.cores, maxTimes)
			b.cores = 0
			if float64(m.Cores) <= mostCores {
				b.cores = m.Cores
			}
		}
		if b.pace > mostPace {
			if b.others == "" {
				b.others = fmt.Sprintf("%.3g jobs per second and core, far more than others", b.pace)
			}
			b.pace = 0
		}
	}
}

// toldCores is what the upstream reports, or else what discovery says; 0 is unknown.
func (m *member) toldCores() int { return cmp.Or(m.reportedCores, m.Cores) }

// lowerMedian is the middle of the figures, or the lower of the two in the middle;
// of none it is 0.
func lowerMedian(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}
