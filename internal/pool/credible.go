package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
	// comparedTogether is how many upstreams share one comparison: in a large pool, one report more moves
	// no median far.
	comparedTogether = 64
	// doubtedAfter is how many reports in a row change whether the load is believed.
	doubtedAfter = 2
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

// norms is what is usual among the upstreams: what is believed of one of them is bounded by those of all.
type norms struct {
	mostCores, mostPace float64 // what is believed of an upstream
	service             float64 // how long a core takes for a job, in the median, in seconds; 0 is unknown
	uncompared          int     // reports since these were found

	slownesses slownesses
	untimed    int // answers since these were found
}

// compare finds the norms. It sorts what it is given: the cores of all upstreams, and the jobs that a core of
// them completes per second.
func (n *norms) compare(cores, paces []float64) {
	n.uncompared = 0
	n.mostCores, n.mostPace = maxTimes*lowerMedian(cores), maxPace
	pace := lowerMedian(paces)
	if len(paces) >= enoughPaces {
		n.mostPace = min(n.mostPace, maxTimes*pace)
	}
	n.service = 0
	if known := len(paces); known > 0 {
		n.service = 1 / paces[known/2] // of two, the quicker one's: the slower may be sick
	}
}

// figures is what an upstream reports of itself, its load aside.
type figures struct {
	cores  int     // 0 is unknown
	busy   float64 // cores; negative is unknown
	rate   rate
	absurd string // what is wrong with the last report by itself; "" is nothing
	doubts doubts
}

// plausibleCores is what the upstream reports, or else what discovery says, if that can be true; 0 is unknown.
func (f *figures) plausibleCores(discovered int, n *norms) int {
	for _, cores := range [...]int{f.cores, discovered} {
		if cores > 0 && float64(cores) <= n.mostCores {
			return cores
		}
	}
	return 0
}

// pace is how many jobs a busy core completes per second, if that can be true; 0 is unknown.
func (f *figures) pace(n *norms) float64 {
	if pace := f.rate.perCore(); pace <= n.mostPace {
		return pace
	}
	return 0
}

// observeRate compares the counters of two reports. Jobs that failed do not count:
// who fails at once is not quick.
func (f *figures) observeRate(r Report) {
	if r.Completed < 0 {
		return
	}
	busy := r.CoresBusy
	if busy < 0 {
		busy = sum(r.Running)
		if r.Cores > 0 {
			busy = math.Min(busy, float64(r.Cores))
		}
	}
	f.rate.observe(r.At, r.Completed-max(0, r.Failed), busy)
}

// wrong says what is not believed; "" is nothing. tooLong is what is wrong with the cache listing.
func (f *figures) wrong(discovered int, tooLong string, n *norms) string {
	wrong := []string{f.absurd}
	if f.doubts.doubted {
		wrong = append(wrong, "fewer than half of the jobs that this sidecar has there")
	}
	wrong = append(wrong, tooLong)
	if told, pace := cmp.Or(f.cores, discovered), f.rate.perCore(); float64(told) > n.mostCores {
		wrong = append(wrong, fmt.Sprintf("%d cores, more than %d times as many as others", told, maxTimes))
	} else if pace > n.mostPace {
		wrong = append(wrong, fmt.Sprintf("%.3g jobs per second and core, far more than others", pace))
	}
	return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), ", ")
}

// doubts is whether the load that an upstream reports is believed. It is not if reports tell of fewer than half of
// this sidecar's jobs that were there without an answer since the report before: an upstream that always looks idle
// would draw the jobs of all sidecars. Some may honestly be missing, such as those whose answers are under way.
type doubts struct {
	at      time.Time // the instant that the last compared report tells of
	number  uint64    // of the last claim before it was compared
	short   int       // reports in a row that told of too few
	enough  int       // reports in a row that told of enough
	doubted bool      // the load that it tells is not believed
}

// observe takes a report of so many jobs. older is how many of this sidecar's jobs must be among them.
func (d *doubts) observe(at time.Time, jobs float64, older int) {
	switch {
	case 2*jobs < float64(older):
		d.short, d.enough = d.short+1, 0
	case older > 0:
		d.short, d.enough = 0, d.enough+1
	}
	if d.short >= doubtedAfter {
		d.doubted = true
	}
	if d.enough >= doubtedAfter {
		d.doubted = false
	}
	d.at = at
}

// forget forgets what a restarted upstream reported.
func (f *figures) forget() {
	f.cores, f.absurd, f.rate = 0, "", rate{}
	f.doubts.short, f.doubts.enough, f.doubts.doubted = 0, 0, false
}
