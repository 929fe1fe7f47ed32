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
	cores  int     // by the report or by discovery; 0 is unknown
	pace   float64 // jobs that a busy core completes per second; 0 is unknown

	tooManyCores, tooFast bool // beside the others
}

// wrong says what is not believed of an upstream; "" is nothing.
func (m *member) wrong() string {
	wrong := m.believed.report
	also := func(format string, values ...any) {
		if wrong != "" {
			wrong += ", "
		}
		wrong += fmt.Sprintf(format, values...)
	}
	if m.ledger.doubted {
		also("fewer than half of the jobs that this sidecar has there")
	}
	if m.listing.tooLong != "" {
		also("%s", m.listing.tooLong)
	}
	if m.listing.doubted {
		also("a cache listing that most jobs found to be wrong")
	}
	if m.believed.tooManyCores {
		also("%g cores, more than %d times as many as others", m.told.cores, maxTimes)
	} else if m.believed.tooFast {
		also("%.3g jobs per second and core, far more than others", m.told.pace)
	}
	return wrong
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
	unknown(&r.Failed, maxCompleted, -1, "%g failed jobs")
	for _, mean := range []*float64{&r.Wait, &r.Response} {
		if *mean < 0 {
			blame("a mean of %g s", *mean)
			*mean = math.NaN()
		}
		unknown(mean, maxMean, math.NaN(), "a mean of %g s")
	}
	return r, known, strings.Join(absurd, ", ")
}

// saneBytes reports whether the size of a project's data can be true.
func saneBytes(bytes float64) bool { return bytes > 0 && bytes <= maxBytes }

// saneLoad reports whether counts of jobs or joblets can be true.
func saneLoad(counts [selection.Priorities]float64) bool {
	return !slices.ContainsFunc(counts[:], func(n float64) bool { return !(n >= 0 && n <= maxJobs) })
}

// comparison holds the cores and paces that all upstreams of the set tell, in order.
// Each report changes one of them, and it costs less to move that one than to sort all.
type comparison struct {
	cores, paces []float64
}

// tells takes what one upstream tells now in place of what it told before.
func (p *Pool) tells(m *member) {
	cores, pace := float64(m.toldCores()), m.rate.perCore()
	p.told.cores = replace(p.told.cores, m.told.cores, cores)
	p.told.paces = replace(p.told.paces, m.told.pace, pace)
	m.told.cores, m.told.pace = cores, pace
}

// tellAnew begins the comparison anew, after the set has changed.
func (p *Pool) tellAnew() {
	p.told = comparison{}
	for _, m := range p.set {
		m.told.cores, m.told.pace = 0, 0
		p.tells(m)
	}
}

// compare sets what is believed of each upstream's cores and pace, beside those of the
// others.
func (p *Pool) compare() {
	mostCores, mostPace := maxTimes*lowerMedian(p.told.cores), float64(maxPace)
	if len(p.told.paces) >= enoughPaces {
		mostPace = min(mostPace, maxTimes*lowerMedian(p.told.paces))
	}
	for _, m := range p.set {
		b := &m.believed
		b.cores, b.pace = int(m.told.cores), m.told.pace
		b.tooManyCores, b.tooFast = m.told.cores > mostCores, m.told.pace > mostPace
		if b.tooManyCores {
			b.cores = 0
			if float64(m.Cores) <= mostCores {
				b.cores = m.Cores
			}
		}
		if b.tooFast {
			b.pace = 0
		}
	}
}

// replace puts a figure in place of another in a slice that is in order. A figure of 0
// is unknown and stands for none.
func replace(figures []float64, before, now float64) []float64 {
	if before == now {
		return figures
	}
	if before > 0 {
		i, _ := slices.BinarySearch(figures, before)
		figures = slices.Delete(figures, i, i+1)
	}
	if now > 0 {
		i, _ := slices.BinarySearch(figures, now)
		figures = slices.Insert(figures, i, now)
	}
	return figures
}

// toldCores is what the upstream reports, or else what discovery says; 0 is unknown.
func (m *member) toldCores() int { return cmp.Or(m.reportedCores, m.Cores) }

// lowerMedian is the middle of figures in order, or the lower of the two in the middle;
// of none it is 0.
func lowerMedian(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	return figures[(len(figures)-1)/2]
}
