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

// Bounds of what one upstream reports. Figures beyond them, and NaN and negative ones, count as unknown.
const (
	maxCores     = 1 << 16
	maxJobs      = 1e9 // running jobs or stalled joblets
	maxCompleted = 1e15
	maxMean      = 30 * 24 * 3600 // seconds
	maxBytes     = 1e15           // of one project
	maxPace      = 1e6            // jobs per second and core
	// maxTimes bounds the cores of an upstream, and the completions per core, in multiples of the lower median of all
	// upstreams. Upstreams differ in size, but one with a wrong figure would attract the jobs of all others.
	maxTimes = 16
	// enoughPaces is the number of upstreams with a known pace from which paces are compared. With two, either could be the
	// wrong one.
	enoughPaces = 3
	// manyListed is the number of cached projects that is always believed. A longer listing must have at most maxTimes as
	// many as the longest one of the others.
	manyListed = 10_000
	// comparedTogether is the number of upstreams that share one comparison: in a large pool, one report hardly moves a
	// median.
	comparedTogether = 64
	// doubtedAfter is the number of reports in a row that change whether the load is believed.
	doubtedAfter = 2
)

// sane replaces the impossible figures of a report by unknown ones, and returns them in words. known is false if the load is
// unknown.
func (r Report) sane() (sane Report, known bool, wrong string) {
	var absurd []string
	blame := func(format string, value any) { absurd = append(absurd, fmt.Sprintf(format, value)) }
	known = saneLoad(r.Running) && saneLoad(r.Stalled)
	if !saneLoad(r.Running) {
		blame("%v running jobs", r.Running)
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
	unknown(&r.Begun, maxCompleted, 0, "%g started jobs")
	unknown(&r.Read, maxBytes, 0, "%g bytes of prompts read")
	unknown(&r.Failed, maxCompleted, -1, "%g failed jobs")
	if r.Wait < 0 {
		blame("a mean wait of %g s", r.Wait)
		r.Wait = math.NaN()
	}
	unknown(&r.Wait, maxMean, math.NaN(), "a mean wait of %g s")
	return r, known, strings.Join(absurd, ", ")
}

// saneBytes reports whether the size of a project's data is possible.
func saneBytes(bytes float64) bool { return bytes > 0 && bytes <= maxBytes }

// saneLoad reports whether counts of jobs or joblets are possible.
func saneLoad(counts [selection.Priorities]float64) bool {
	return !slices.ContainsFunc(counts[:], func(n float64) bool { return !(n >= 0 && n <= maxJobs) })
}

// lowerMedian is the median of the figures, or the lower of two; of none it is 0. It sorts them.
func lowerMedian(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}

// norms is what is usual among the upstreams, which bounds what is believed of one.
type norms struct {
	mostCores, mostPace float64 // of one upstream
	service             float64 // median time of a job on a core in seconds; 0 is unknown
	uncompared          int     // reports since these were computed

	slownesses slownesses
	untimed    int // responses since they were computed
}

// compare computes the norms from the cores and paces of all upstreams. It sorts both.
func (n *norms) compare(cores, paces []float64) {
	n.uncompared = 0
	n.mostCores, n.mostPace = maxTimes*lowerMedian(cores), maxPace
	pace := lowerMedian(paces)
	if len(paces) >= enoughPaces {
		n.mostPace = min(n.mostPace, maxTimes*pace)
	}
	n.service = 0
	if known := len(paces); known > 0 {
		n.service = 1 / paces[known/2] // of two, the quicker one's: the slower can be sick
	}
}

// figures answers the question whether what an upstream reports is credible.
type figures struct {
	cores  int     // 0 is unknown
	busy   float64 // busy cores; negative is unknown
	rate   rate
	absurd string // impossible figures of the last report in words; "" is none
	doubts doubts
}

// plausibleCores is the number of cores that the upstream reports, or else the one from discovery, if it is credible; 0 is
// unknown.
func (f *figures) plausibleCores(discovered int, n *norms) int {
	for _, cores := range [...]int{f.cores, discovered} {
		if cores > 0 && float64(cores) <= n.mostCores {
			return cores
		}
	}
	return 0
}

// pace is the number of jobs that a busy core completes per second, if it is credible; 0 is unknown.
func (f *figures) pace(n *norms) float64 {
	if pace := f.rate.perCore(); pace <= n.mostPace {
		return pace
	}
	return 0
}

// observeRate learns the rate from the counters of a report. Failed jobs do not count: an upstream that fails at once is not
// quick.
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

// wrong returns in words what is not believed; "" is nothing. tooLong is why the cache listing is not.
func (f *figures) wrong(discovered int, tooLong string, n *norms) string {
	wrong := []string{f.absurd}
	if f.doubts.doubted {
		wrong = append(wrong, "fewer than half of this sidecar's jobs there")
	}
	wrong = append(wrong, tooLong)
	if cores, pace := cmp.Or(f.cores, discovered), f.rate.perCore(); float64(cores) > n.mostCores {
		wrong = append(wrong, fmt.Sprintf("%d cores, more than %d times as many as others", cores, maxTimes))
	} else if pace > n.mostPace {
		wrong = append(wrong, fmt.Sprintf("%.3g jobs per second and core, far more than others", pace))
	}
	return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), ", ")
}

// forget forgets what a restarted upstream reported.
func (f *figures) forget() {
	f.cores, f.absurd, f.rate = 0, "", rate{}
	f.doubts.contrary, f.doubts.doubted = 0, false
}

// doubts is whether the load that an upstream reports is believed:
//
//	believed --(2 reports in a row have too few jobs)--> doubted --(2 in a row have enough)--> believed
//
// A report has too few jobs if it counts fewer than half of this sidecar's own jobs that have waited there for a response
// since before the previous report. Some can be missing, such as jobs whose responses are in transit. An upstream that always
// looks idle would attract the jobs of all sidecars.
type doubts struct {
	at       time.Time // instant of the last report that was compared
	number   uint64    // of the last claim before
	contrary int       // reports in a row that contradict doubted
	doubted  bool
}

// observe records the number of jobs in a report. older is the number of this sidecar's jobs that must be among them.
func (d *doubts) observe(at time.Time, jobs float64, older int) {
	d.at = at
	switch few := 2*jobs < float64(older); {
	case older == 0: // the report says nothing
	case few == d.doubted:
		d.contrary = 0
	default:
		if d.contrary++; d.contrary == doubtedAfter {
			d.doubted, d.contrary = few, 0
		}
	}
}
