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

// joblet is one piece of work on one core, for one or more jobs.
type joblet struct {
	key      key
	server   *server
	epoch    int // of the server's life that it belongs to
	priority selection.Priority
	seq      uint64 // submission order of its first job
	work     time.Duration
	bytes    int64
	jobs     []*job
	begun    time.Duration
	running  bool
	place    int // in the queue
}

// jobletQueue is a heap by priority, then submission, for container/heap.
type jobletQueue []*joblet

func (q jobletQueue) Len() int { return len(q) }

func (q jobletQueue) Less(i, j int) bool {
	if q[i].priority != q[j].priority {
		return q[i].priority > q[j].priority
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
