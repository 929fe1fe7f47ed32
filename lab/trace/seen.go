package trace

import (
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// Seen summarises how jobs were served, as far as the logs contain it.
type Seen struct {
	Upstreams int     // number of upstreams in the logs; 0 if the logs do not name them
	Hits, Hit int     // jobs with a cache hit, and jobs whose hit or miss is known, without the first tenth of all jobs
	Keys      int     // number of projects
	Duration  float64 // mean duration of low jobs in seconds, without the first tenth of all jobs

	// Estimate sets these. Cores is how many jobs an upstream runs at a time, assuming first come, first served. A positive
	// Crowding contradicts that (see crowding). Wait is the mean wait. Fetch is the assumed time of a fetch, 0 if it was
	// measured. Unlike counts the jobs whose cost was taken from other jobs of their project.
	Cores                 int
	Crowding, Wait, Fetch float64
	Unlike                int
}

// see summarises entries. It also corrects them: a job without an upstream counts as not answered if the log names
// upstreams, and all jobs count as low if none is low.
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
		if 2*addresses > named && !address.MatchString(all[i].upstream) { // nginx logs its group's name if it reached no upstream
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
