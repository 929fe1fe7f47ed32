package pool

import (
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
	// manyListed is how many projects any upstream may say that it has cached. Beyond, it may not say more than
	// maxTimes as many as any other.
	manyListed = 10_000
)

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
	unknown(&r.Begun, maxCompleted, 0, "%g begun jobs")
	unknown(&r.Read, maxBytes, 0, "%g bytes read")
	unknown(&r.Failed, maxCompleted, -1, "%g failed jobs")
	if r.Wait < 0 {
		blame("a mean wait of %g s", r.Wait)
		r.Wait = math.NaN()
	}
	unknown(&r.Wait, maxMean, math.NaN(), "a mean wait of %g s")
	return r, known, strings.Join(absurd, ", ")
}

// saneBytes reports whether the size of a project's data can be true.
func saneBytes(bytes float64) bool { return bytes > 0 && bytes <= maxBytes }

// saneLoad reports whether counts of jobs or joblets can be true.
func saneLoad(counts [selection.Priorities]float64) bool {
	return !slices.ContainsFunc(counts[:], func(n float64) bool { return !(n >= 0 && n <= maxJobs) })
}

// lowerMedian is the middle of the figures, or the lower of the two in the middle; of none it
// is 0. It sorts them.
func lowerMedian(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}
