package quality

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
)

// Trial judges jobs that have ended as a sidecar would have while they came, once a
// second, and returns the changes of the fleet's mode. bound is how long a job waits
// for its first byte; 0 is not known.
func Trial(jobs []Job, bound func(i int) time.Duration) []Change {
	type event struct {
		at  time.Time
		job int
		end bool
	}
	var events []event
	for i := range jobs {
		j := &jobs[i]
		if j.Completeness != intake.Absent {
			events = append(events, event{j.Arrived.Add(j.FirstByte), i, false})
		}
		events = append(events, event{j.Arrived.Add(j.LastByte), i, true})
	}
	if len(events) == 0 {
		return nil
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	start := slices.MinFunc(jobs, func(a, b Job) int { return a.Arrived.Compare(b.Arrived) }).Arrived
	m := New(start)
	var changes []Change
	next := start
	for _, e := range events {
		for ; next.Before(e.at); next = next.Add(time.Second) {
			changes = append(changes, m.Advance(next)...)
			if idle := e.at.Sub(next); idle > 2*maxAge && m.fleet.state.mode == Unknown {
				next = e.at.Add(-time.Second) // nothing changes any more
			}
		}
		j := &jobs[e.job]
		if e.end {
			m.Observe(e.at, j)
			continue
		}
		m.Began(e.at, FirstByte{Arrived: j.Arrived, Claimed: j.Arrived, Bound: bound(e.job)})
	}
	return append(changes, m.Advance(next)...)
}
