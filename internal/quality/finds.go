package quality

import (
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// Finds counts the jobs that found their data at their upstream.
type Finds struct {
	// Jobs is how many jobs that need data got a response, and Found how many of them found the data there: as the
	// upstream reports, or else as was believed when it was picked.
	Jobs  uint64 `json:"jobs"`
	Found uint64 `json:"found"`
	// Shadowed is for how many of the jobs the shadow policy chose an upstream, too, and ShadowFound how often that
	// upstream was believed to have the data. The data lies where the policy in force put it.
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

// shares are those of the jobs that found their data, and would have with the shadow policy; -1 without jobs.
func (f *Finds) shares() (found, shadow float64) {
	return share(f.Found, f.Jobs), share(f.ShadowFound, f.Shadowed)
}

func share(part, all uint64) float64 {
	if all == 0 {
		return -1
	}
	return float64(part) / float64(all)
}
