//go:build soak

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// level is something that must not grow while the load is the same.
type level struct {
	metric string
	slack  float64 // by which the end may exceed the beginning, in its own unit
	perJob float64 // and by how much more for each job more in flight

	seen []float64
	jobs []float64 // in flight or waiting, at the same instants
}

// newLevels are what a leak would raise. A job holds a few goroutines, two
// descriptors and its body; a busy machine has more jobs in flight at one time
// than at another, which is no leak. The slack covers connections that are pooled after
// hundreds of jobs were in flight at one time, the heap's swing between two collections,
// and what the process keeps of such a time. At rest, connections have less.
func newLevels() []*level {
	levels := []*level{
		{metric: "go_goroutines", slack: 500, perJob: 6},
		{metric: "process_open_fds", slack: 500, perJob: 3},
		{metric: "go_memstats_heap_inuse_bytes", slack: 32 << 20, perJob: 256 << 10},
	}
	if !raceDetector() { // which has a memory of its own
		levels = append(levels, &level{metric: "process_resident_memory_bytes", slack: 64 << 20, perJob: 256 << 10})
	}
	return levels
}

// watch notes the levels every second until ctx ends.
func watch(ctx context.Context, s *sidecar, levels []*level) {
	due := time.NewTicker(time.Second)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		scraped, err := s.scrape()
		if err != nil {
			continue // a sidecar that is held up may say so; flat wants enough that came
		}
		for _, l := range levels {
			l.seen = append(l.seen, scraped.sum(l.metric))
			l.jobs = append(l.jobs, scraped.sum("pilotfish_upstream_in_flight")+scraped.sum("pilotfish_queue_jobs"))
		}
	}
}

// flat compares the last quarter with the second: the first warms up.
func (l *level) flat(t *testing.T) {
	quarter := len(l.seen) / 4
	if !assert.GreaterOrEqual(t, quarter, 5, "too short a time to tell") {
		return
	}
	before, after := median(l.seen[quarter:2*quarter]), median(l.seen[3*quarter:])
	more := max(0, median(l.jobs[3*quarter:])-median(l.jobs[quarter:2*quarter]))
	t.Logf("%-30s second quarter %.0f, last %.0f, with %.0f jobs more", l.metric, before, after, more)
	assert.LessOrEqual(t, after, before+l.slack+more*l.perJob, "%s grows", l.metric)
	assert.Positive(t, before, "%s is not there", l.metric)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
