package workload

import (
	"container/heap"
	"math"

	"example.org/pilotfish/lab/trace"
)

// never is later than any instant: a process that is over is due then.
const never = math.MaxFloat64

// process is something that happens repeatedly: a schedule, the channels of one
// firing, a person's session.
type process interface {
	// run does what is due at an instant. It reports whether it filled in a job to
	// emit, and when it is due again.
	run(g *Generator, at float64, job *trace.Job) (emits bool, again float64)
}

// event is a process and when it is due.
type event struct {
	at float64
	// number breaks ties by the order in which processes began.
	number int
	process
}

// queue is the events to come, the next one first.
type queue struct {
	events eventHeap
	number int
}

func (q *queue) push(at float64, p process) {
	q.number++
	heap.Push(&q.events, event{at, q.number, p})
}

// next is the event that is due first; the queue must not be empty.
func (q *queue) next() *event { return &q.events[0] }

// drop removes the next event.
func (q *queue) drop() { heap.Pop(&q.events) }

// delay puts the next event off to a later time.
func (q *queue) delay(at float64) {
	q.events[0].at = at
	heap.Fix(&q.events, 0)
}

// eventHeap is for container/heap.
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
