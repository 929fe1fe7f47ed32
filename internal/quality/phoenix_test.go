package quality

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// phoenix is the system that N. J. Turner's thesis measures, as far as its description
// goes (3.1): workers take tasks from two queues, first come first served. A search is
// one task on the default queue, which puts 25 there, one for each source of data. One
// that waits 60 s there is dropped. Any other brings a result, which is processed on the
// quick queue, before anything else, and then sent by a task on the default queue.
type phoenix struct {
	now     time.Duration
	idle    int
	quick   []*task
	regular []*task
	running running
	rng     *rand.Rand
	ended   []search
}

// search is one job, and what came of it.
type search struct {
	arrived, first, last, ended time.Duration
	packets, open               int
}

type task struct {
	search *search
	kind   kind
	queued time.Duration
	until  time.Duration
	source int
}

type kind int

const (
	query kind = iota
	source
	process
	send
)

const (
	sources   = 25
	patience  = 60 * time.Second
	queryTime = 500 * time.Millisecond
)

// running is a heap of tasks by their ends.
type running []*task

func (r running) Len() int           { return len(r) }
func (r running) Less(i, j int) bool { return r[i].until < r[j].until }
func (r running) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *running) Push(x any)        { *r = append(*r, x.(*task)) }
func (r *running) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// takes is how long a worker is busy with a task: one source is slow, the others
// answer within seconds. The work of a search is some 60 s, as the slopes of the
// thesis's table 3 tell: with 32 workers, 60/32 s are 0.5 s more than the 1.36 s from
// one search to the next.
func (p *phoenix) takes(t *task) time.Duration {
	mean := 100 * time.Millisecond
	switch {
	case t.kind == query:
		mean = queryTime
	case t.kind == source && t.source == sources-1:
		mean = 16 * time.Second
	case t.kind == source:
		mean = 1600 * time.Millisecond
	}
	return time.Duration(float64(mean) * (0.9 + 0.2*p.rng.Float64()))
}

// run lets searches arrive at instants, and returns them in the order in which they ended.
func runPhoenix(workers int, arrivals []time.Duration, rng *rand.Rand) []search {
	p := &phoenix{idle: workers, rng: rng}
	for len(arrivals) > 0 || len(p.running) > 0 {
		if len(arrivals) > 0 && (len(p.running) == 0 || arrivals[0] <= p.running[0].until) {
			p.now = arrivals[0]
			arrivals = arrivals[1:]
			p.regular = append(p.regular, &task{search: &search{arrived: p.now, open: 1}, kind: query, queued: p.now})
		} else {
			t := heap.Pop(&p.running).(*task)
			p.now = t.until
			p.idle++
			p.finish(t)
		}
		p.start()
	}
	return p.ended
}

// start gives tasks to the workers that are idle.
func (p *phoenix) start() {
	for p.idle > 0 {
		var t *task
		switch {
		case len(p.quick) > 0:
			t, p.quick = p.quick[0], p.quick[1:]
		case len(p.regular) > 0:
			t, p.regular = p.regular[0], p.regular[1:]
		default:
			return
		}
		if t.kind == source && p.now-t.queued >= patience {
			p.over(t.search)
			continue
		}
		t.until = p.now + p.takes(t)
		p.idle--
		heap.Push(&p.running, t)
	}
}

// finish does what follows a task.
func (p *phoenix) finish(t *task) {
	s := t.search
	switch t.kind {
	case query:
		s.open += sources
		for i := range sources {
			p.regular = append(p.regular, &task{search: s, kind: source, queued: p.now, source: i})
		}
	case source:
		s.open++
		p.quick = append(p.quick, &task{search: s, kind: process, queued: p.now})
	case process:
		s.open++
		p.regular = append(p.regular, &task{search: s, kind: send, queued: p.now})
	case send:
		if s.packets == 0 {
			s.first = p.now
		}
		s.last = p.now
		s.packets++
	}
	p.over(s)
}

// over ends a task of a search, and the search with its last.
func (p *phoenix) over(s *search) {
	if s.open--; s.open == 0 {
		s.ended = p.now
		p.ended = append(p.ended, *s)
	}
}

// job is a search as the machine sees it.
func (s *search) job(start time.Time) record.Job {
	j := record.Job{
		Outcome: intake.Answered, Completeness: intake.Complete, Arrived: start.Add(s.arrived),
		TTFB: s.first - s.arrived, Total: s.ended - s.arrived,
	}
	switch {
	case s.packets == 0:
		j.Outcome, j.Completeness = intake.Deadline, intake.Absent
	case s.packets < sources:
		j.Outcome, j.Completeness = intake.Truncated, intake.Partial
	}
	return j
}
