package prewarm

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
)

const (
	// span is how long a job counts at least; it counts at most twice as long.
	span = 5 * time.Minute
	// maxCounts bounds the counts of one span, of all upstreams together. They
	// take about 1 MB.
	maxCounts = 10_000
)

// countKey is a project at an upstream.
type countKey struct {
	upstream string
	project  uint64
}

// count is how many jobs a project had at one upstream.
type count struct {
	key  uint64
	id   intake.Text
	jobs int
}

// counts are the recent jobs by upstream and project. They have no clock and no
// lock. There are two spans: when the current one is over, it becomes the
// previous one, and what that counted is forgotten.
type counts struct {
	began             time.Time // of the current span
	current, previous map[countKey]*count
}

func newCounts() *counts { return &counts{current: map[countKey]*count{}} }

// note counts a job. A project that is new in a full span is not counted.
func (c *counts) note(now time.Time, upstream string, key uint64, id intake.Text) {
	c.advance(now)
	at := countKey{upstream, key}
	one, known := c.current[at]
	if !known && len(c.current) >= maxCounts {
		return
	}
	if !known {
		one = &count{key: key, id: id}
		c.current[at] = one
	}
	one.jobs++
}

// advance begins a new span when the current one is over.
func (c *counts) advance(now time.Time) {
	switch past := now.Sub(c.began); {
	case past < span:
		return
	case past < 2*span:
		c.previous = c.current
	default:
		c.previous = nil
	}
	c.began, c.current = now, map[countKey]*count{}
}

// busiest lists an upstream's projects by their recent jobs, most jobs first.
func (c *counts) busiest(now time.Time, upstream string) []count {
	c.advance(now)
	var all []count
	for at, one := range c.current {
		if at.upstream == upstream {
			all = append(all, *one)
			if before := c.previous[at]; before != nil {
				all[len(all)-1].jobs += before.jobs
			}
		}
	}
	for at, one := range c.previous {
		if _, counted := c.current[at]; !counted && at.upstream == upstream {
			all = append(all, *one)
		}
	}
	slices.SortFunc(all, func(x, y count) int {
		return cmp.Or(cmp.Compare(y.jobs, x.jobs), cmp.Compare(x.key, y.key))
	})
	return all
}
