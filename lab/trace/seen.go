package trace

import (
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// Seen sums up how jobs were served, as far as logs contain it.
type Seen struct {
	Upstreams int     // that are named; 0 where none is
	Hits, Hit int     // after the first tenth of the jobs: those that found their project cached, and those of which it is known
	Keys      int     // projects
	Duration  float64 // the mean of low jobs after the first tenth of the jobs, in seconds

	// Estimate adds how many jobs an upstream runs at one time, if they start by arrival, whether long
	// runs at crowded upstreams contradict that (see crowding), the mean wait, the time of a fetch, if it had
	// to be assumed, and how many jobs cost what the others of their project do.
	Cores                 int
	Crowding, Wait, Fetch float64
	Unlike                int
}

// see also marks jobs as not answered if they reached no upstream although the log names some, and as low if none is low.
func see(all []entry) (s Seen) {
	none := !slices.ContainsFunc(all, func(e entry) bool { return e.job.Priority == selection.Low })
	named, addresses := 0, 0
	for i := range all {
		if all[i].upstream != "" {
			named++
		}
		if address.MatchString(all[i].upstream) {
			addresses++
		}
	}
	upstreams, keys, low := map[string]bool{}, map[Project]bool{}, 0.0
	for i := range all {
		if 2*addresses > named && !address.MatchString(all[i].upstream) { // the name of nginx's group: it reached none
			all[i].upstream = ""
		}
		upstreams[all[i].upstream] = true
		keys[all[i].job.Project] = true
		if all[i].high = none; none {
			all[i].job.Priority = selection.Low
		}
	}
	delete(upstreams, "")
	s.Upstreams, s.Keys = len(upstreams), len(keys)
	for i := range all {
		e := &all[i]
		if e.answered = e.answered && (s.Upstreams == 0 || e.upstream != ""); !e.answered {
			continue
		}
		if i < len(all)/10 {
			continue
		}
		if e.known {
			s.Hit++
		}
		if e.known && !e.cold && e.job.Load == 0 {
			s.Hits++
		}
		if e.job.Priority == selection.Low {
			s.Duration += e.end - e.job.Offset
			low++
		}
	}
	s.Duration /= max(1, low)
	return s
}
