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

// Bounds of what one upstream reports. Figures outside these bounds, NaN and negative figures count as unknown.
const (
	maxCores     = 1 << 16
	maxJobs      = 1e9 // running jobs or stalled joblets
	maxCompleted = 1e15
	maxMean      = 30 * 24 * 3600 // seconds
	maxBytes     = 1e15           // of one project
	maxPace      = 1e6            // jobs per second and core
	// maxTimes bounds an upstream's cores, and its completions per core, as a multiple of the lower median of all
	// upstreams. Upstreams can differ in size, but one that reports a much too large figure would attract all jobs.
	maxTimes = 16
	// enoughPaces is the minimum number of upstreams with a known pace for comparing paces. With only two, either pace
	// could be the wrong one.
	enoughPaces = 3
	// manyListed is the length up to which a cache listing is always credible. A longer listing is credible up to
	// maxTimes the length of the longest listing of the other upstreams.
	manyListed = 10_000
	// comparedTogether sets how often the norms are computed: after every report in a pool of up to 64 upstreams, after
	// every tenth report in a pool of 640. In a large pool, one report hardly moves a median.
	comparedTogether = 64
	// doubtedAfter is the number of contradicting reports in a row after which an upstream's load becomes doubted, or
	// credible again.
	doubtedAfter = 2
)

// sanitize returns the report with impossible figures marked as unknown, and wrong, which lists them in words. known is
// false if the load is unknown.
func (r Report) sanitize() (sane Report, known bool, wrong string) {
	var absurd []string
	blame := func(format string, value any) { absurd = append(absurd, fmt.Sprintf(format, value)) }
	known = plausibleLoad(r.Running) && plausibleLoad(r.Stalled)
	if !plausibleLoad(r.Running) {
		blame("%v running jobs", r.Running)
	}
	if !plausibleLoad(r.Stalled) {
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

// plausibleBytes reports whether the size of a project's data is possible.
func plausibleBytes(bytes float64) bool { return bytes > 0 && bytes <= maxBytes }

// plausibleLoad reports whether counts of jobs or joblets are possible.
func plausibleLoad(counts [selection.Priorities]float64) bool {
	return !slices.ContainsFunc(counts[:], func(n float64) bool { return !(n >= 0 && n <= maxJobs) })
}

// lowerMedian returns the median of the figures; of an even number, the lower of the two in the middle. Without figures
// it returns 0. It sorts them.
func lowerMedian(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	slices.Sort(figures)
	return figures[(len(figures)-1)/2]
}

// norms are the usual figures of the upstreams, which bound the credible figures of one upstream.
type norms struct {
	mostCores, mostPace float64 // credible maximum of one upstream
	service             float64 // median over the upstreams of the time that a core needs for a job, in seconds; 0 is unknown
	uncompared          int     // reports since these were computed

	slownesses slownesses
	untimed    int // responses since they were computed
}

// compare computes the norms from the cores and paces of all upstreams. It sorts both slices.
func (n *norms) compare(cores, paces []float64) {
	n.uncompared = 0
	n.mostCores, n.mostPace = maxTimes*lowerMedian(cores), maxPace
	pace := lowerMedian(paces)
	if len(paces) >= enoughPaces {
		n.mostPace = min(n.mostPace, maxTimes*pace)
	}
	n.service = 0
	if known := len(paces); known > 0 {
		n.service = 1 / paces[known/2] // of two upstreams, that of the faster one: the slower one can be faulty
	}
}

// figures holds what an upstream reports about itself, and decides whether it is credible.
type figures struct {
	cores  int     // 0 is unknown
	busy   float64 // busy cores; negative is unknown
	rate   rate
	absurd string // impossible figures of the last report, in words; "" if there are none
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

// observeRate learns the rate from the counters of a report. Failed jobs do not count: an upstream that fails every job
// at once is not fast.
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

// implausible lists in words which figures are not credible; "" if all are. tooLong says why the cache listing is not
// credible, if it is not.
func (f *figures) implausible(discovered int, tooLong string, n *norms) string {
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

// forget drops the figures of an upstream that joined again or restarted; claims is the number of the last claim.
func (f *figures) forget(claims uint64) {
	f.cores, f.absurd, f.rate = 0, "", rate{}
	f.doubts = doubts{joined: claims}
}

// doubts decides whether the load that an upstream reports is credible:
//
//	credible --(2 reports in a row have too few jobs)--> doubted --(2 in a row have enough)--> credible
//
// A report has too few jobs if its number of jobs is less than half of this sidecar's own jobs that were sent there
// before the previous report, but after it joined or restarted, and still wait for a response. A few can be missing, such
// as jobs whose responses are in transit. Without this check, an upstream that always reports to be idle would attract the jobs of all sidecars.
type doubts struct {
	at       time.Time // instant of the last report that was compared
	number   uint64    // number of the last claim before that report
	joined   uint64    // number of the last claim before the upstream joined or restarted
	contrary int       // reports in a row that speak for changing doubted
	doubted  bool
}

// observe records the number of jobs in a report. older is the number of this sidecar's jobs that it must contain.
func (d *doubts) observe(at time.Time, jobs float64, older int) {
	d.at = at
	switch few := 2*jobs < float64(older); {
	case older == 0: // nothing to compare with
	case few == d.doubted:
		d.contrary = 0
	default:
		if d.contrary++; d.contrary == doubtedAfter {
			d.doubted, d.contrary = few, 0
		}
	}
}
