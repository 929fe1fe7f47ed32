package quality

import (
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// CacheHits counts cache hits.
type CacheHits struct {
	// Jobs is the number of jobs that needed data and got a response. Found is how many of them had a cache hit: as the
	// upstream reports, or else as assumed at the pick.
	Jobs  uint64 `json:"jobs"`
	Found uint64 `json:"found"`
	// Shadowed is the number of these jobs for which the shadow policy also chose an upstream, and ShadowFound how
	// often that upstream was assumed to have the data. The caches have the contents that the policy in use, not the
	// shadow policy, has caused.
	Shadowed    uint64 `json:"shadowed"`
	ShadowFound uint64 `json:"shadow_found"`
}

func (f *CacheHits) add(j *record.Job) {
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

func (f *CacheHits) merge(other *CacheHits) {
	f.Jobs, f.Found = f.Jobs+other.Jobs, f.Found+other.Found
	f.Shadowed, f.ShadowFound = f.Shadowed+other.Shadowed, f.ShadowFound+other.ShadowFound
}

// share returns part / all, or -1 if all is 0.
func share(part, all uint64) float64 {
	if all == 0 {
		return -1
	}
	return float64(part) / float64(all)
}
