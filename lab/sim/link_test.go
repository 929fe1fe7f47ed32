package sim

import (
	"testing"

	"example.org/pilotfish/lab/trace"
)

// Fetches use their links one after another and hold no core. None is shorter than it would be
// alone.
func TestFetchesPassLinks(t *testing.T) {
	fetch := func(project trace.Project, load float64) trace.Job {
		return trace.Job{Project: project, Load: load, Bytes: 1 << 20}
	}
	for name, c := range map[string]struct {
		upstreams int
		links     Links
		ends      [3]float64
	}{
		"cores":             {1, Links{}, [3]float64{0.5, 5.5, 8.5}},
		"an upstream's":     {1, Links{Upstream: 1 << 20}, [3]float64{1, 5, 3}},
		"two of upstreams":  {2, Links{Upstream: 1 << 18}, [3]float64{4, 5, 3}},
		"one for upstreams": {2, Links{Shared: 1 << 18}, [3]float64{4, 8, 3}},
		"the slower of two": {2, Links{Upstream: 1 << 30, Shared: 1 << 18}, [3]float64{4, 8, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := setup(t, "least-in-flight", "none", c.upstreams, 1)
			cfg.Fleet.Links = c.links
			requireEnds(t, played(t, cfg, fetch("a", 0.5), fetch("b", 5), trace.Job{Project: "c", Operators: 3}), c.ends[:]...)
		})
	}
}
