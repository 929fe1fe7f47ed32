package quality

import (
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// Finds counts cache hits.
type Finds struct {
	// Jobs is the number of jobs that needed data and got a response. Found is how many of them had a cache hit: as the
	// upstream reports, or else as assumed at the pick.
	Jobs  uint64 `json:"jobs"`
	Found uint64 `json:"found"`
	// Shadowed is the number of these jobs for which the shadow policy also chose an upstream, and ShadowFound how often that
	// upstream was assumed to have the data. Caches are filled by the policy in force.
	Shadowed    uint64 `json:"shadowed"`
	ShadowFound uint64 `json:"shadow_found"`
}

func (f *Finds) add(j *record.Job) {
	found, ok := j.Found()
	if !ok {
		return
	}
	f.Jobs++
	if found {
		f.Found++
	}
	if a := j.Attempt(); a.Shadow != "" {
		f.Shadowed++
		if a.ShadowCache != selection.NotCached {
			f.ShadowFound++
		}
	}
}

func (f *Finds) merge(other *Finds) {
	f.Jobs, f.Found = f.Jobs+other.Jobs, f.Found+other.Found
	f.Shadowed, f.ShadowFound = f.Shadowed+other.Shadowed, f.ShadowFound+other.ShadowFound
}

// shares returns the hit rates of the jobs and of the shadow policy's choices; -1 without jobs.
func (f *Finds) shares() (found, shadow float64) {
	return share(f.Found, f.Jobs), share(f.ShadowFound, f.Shadowed)
}

func share(part, all uint64) float64 {
	if all == 0 {
		return -1
	}
	return float64(part) / float64(all)
}
