package sim

import (
	"container/heap"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// phase is a job's place in the chain of its joblets (the thesis, 3.4).
type phase uint8

const (
	feedSource phase = iota
	sharedOperators
	operators
	outputFeed
	finished
)

// key names a joblet's result: equal keys are computed once.
type key struct {
	project uint64
	version int64
	shared  uint64
	number  int64 // of the job, where the result is nobody else's
	phase   phase
}

// joblet is one piece of work on one core, for one or more jobs. A fetch may pass links instead.
type joblet struct {
	key      key
	server   *server
	epoch    int // of the server's life that it belongs to
	priority selection.Priority
	turn     time.Duration // the first of its jobs'
	seq      uint64        // submission order of its first job
	work     time.Duration
	bytes    int64
	jobs     []*job
	since    time.Duration // while it runs
	running  bool
	place    int // in the queue
}

// joblet names the work of the job's phase. A project's data and its shared
// rules are what jobs have in common (the thesis, figure 2); the rules of one
// channel and the answer are the job's own.
func (j *job) joblet() (k key, work time.Duration, bytes int64) {
	k = key{project: j.project, version: j.version, phase: j.phase}
	switch j.phase {
	case feedSource:
		if j.needed > 0 {
			n := j.needs[j.needed-1]
			return key{project: n.id, phase: feedSource}, n.load, n.bytes
		}
		return k, j.load, j.bytes
	case sharedOperators:
		k.shared = j.shared
		return k, j.sharedRules, j.bytes / 2
	case operators:
		k.number = j.number
		return k, j.operators, 0
	}
	k.number = j.number
	return k, j.output, 0
}

// next goes on to the job's next joblet.
func (j *job) next() {
	if j.phase == feedSource && j.needed < len(j.needs) {
		j.needed++
		return
	}
	j.phase++
}

// onCore reports whether a joblet holds a core while it runs.
func (s *server) onCore(b *joblet) bool {
	return b.key.phase != feedSource || s.fleet.Links == (Links{})
}

// begin runs a joblet, on a core that is free if it needs one. A fetch that passes links takes as
// long as the slowest of them, and no less than alone.
func (s *server) begin(w *world, b *joblet) {
	b.running = true
	b.since = w.now
	ends := s.ends(w.now, b)
	if b.key.phase == feedSource {
		s.fetches++
	}
	if s.onCore(b) {
		s.account(w.now)
		s.busy++
	} else {
		links := s.fleet.Links
		ends = max(ends, s.link.pass(w.now, b.bytes, links.Upstream), w.link.pass(w.now, b.bytes, links.Shared))
	}
	w.events.Add(ends, rankFinish, b)
}

// happen ends a joblet: its result is cached and its jobs go on.
func (b *joblet) happen(w *world) {
	s := b.server
	if b.epoch != s.epoch {
		return // the server died meanwhile
	}
	s.account(w.now)
	if s.onCore(b) {
		s.busy--
	}
	delete(s.shared, b.key)
	if b.key.phase <= sharedOperators {
		s.cache.put(b.key, b.bytes, w.now)
	}
	for _, j := range b.jobs {
		j.on = nil
		j.worked += w.now - b.since
		j.next()
		s.advance(w, j)
	}
	s.dispatch(w)
}

// jobletQueue is a heap by priority, then turn, then submission, for container/heap.
type jobletQueue []*joblet

func (q jobletQueue) Len() int { return len(q) }

func (q jobletQueue) Less(i, j int) bool {
	if q[i].priority != q[j].priority {
		return q[i].priority > q[j].priority
	}
	if q[i].turn != q[j].turn {
		return q[i].turn < q[j].turn
	}
	return q[i].seq < q[j].seq
}

func (q jobletQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *jobletQueue) Push(x any) {
	b := x.(*joblet)
	b.place = len(*q)
	*q = append(*q, b)
}

func (q *jobletQueue) Pop() any {
	last := len(*q) - 1
	b := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return b
}

func (q *jobletQueue) push(b *joblet)   { heap.Push(q, b) }
func (q *jobletQueue) pop() *joblet     { return heap.Pop(q).(*joblet) }
func (q *jobletQueue) remove(b *joblet) { heap.Remove(q, b.place) }
func (q *jobletQueue) fix(b *joblet)    { heap.Fix(q, b.place) }
