package sim

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// forecast plays a server's future, on copies, as if no other job came.
type forecast struct {
	server   *server
	now      time.Duration
	priority selection.Priority // jobs below it do not matter
	running  eventHeap          // the ends of joblets
	busy     int                // cores
	ready    jobletQueue
	awaited  *joblet
}

// newForecast takes in what runs at the server, and what is stalled there and
// goes before a job of this priority that needs the awaited joblet.
func newForecast(s *server, awaited *joblet, p selection.Priority, now time.Duration) *forecast {
	f := &forecast{server: s, now: now, priority: p}
	for _, b := range s.shared {
		switch {
		case b.running:
			f.running.push(event{at: b.ends, seq: b.seq, what: b})
			f.busy += b.cores
		case b != awaited && b.priority >= p:
			plan := *b
			f.ready.push(&plan)
		}
	}
	plan := *awaited
	plan.priority = max(plan.priority, p)
	f.awaited = &plan
	f.ready.push(f.awaited)
	return f
}

// start is how long it takes until the awaited joblet gets a core, or any time
// above limit if it is longer than that.
func (f *forecast) start(limit time.Duration) time.Duration {
	for at := f.now; ; {
		for f.busy < f.server.cores && len(f.ready) > 0 {
			b := f.ready.pop()
			if b == f.awaited {
				return at - f.now
			}
			b.cores = f.server.width(f.busy)
			f.running.push(event{at: at + f.server.takes(at, b, f.busy), seq: b.seq, what: b})
			f.busy += b.cores
		}
		next := f.running.pop()
		if at = next.at; at-f.now > limit {
			return at - f.now
		}
		done := next.what.(*joblet)
		f.busy -= done.cores
		for _, j := range done.jobs {
			if j.priority >= f.priority {
				f.follow(*j)
			}
		}
	}
}

// follow makes the joblet that a job needs next, as if no other job shared it.
func (f *forecast) follow(j job) {
	j.phase++
	if f.server.skip(&j); j.phase == finished {
		return
	}
	_, work, _ := j.joblet()
	f.ready.push(&joblet{priority: j.priority, seq: j.seq, work: work, jobs: []*job{&j}})
}
