package workload

import (
	"math"

	"example.org/pilotfish/pkg/trace"
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

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.number < other.number
}

// queue is a binary heap of events, the next one first. container/heap would make
// the generator a third slower.
type queue struct {
	events []event
	number int
}

func (q *queue) push(at float64, p process) {
	q.number++
	q.events = append(q.events, event{at, q.number, p})
	e := q.events
	for i := len(e) - 1; i > 0; {
		parent := (i - 1) / 2
		if !e[i].before(&e[parent]) {
			return
		}
		e[i], e[parent] = e[parent], e[i]
		i = parent
	}
}

// next is the event that is due first; the queue must not be empty.
func (q *queue) next() *event { return &q.events[0] }

// drop removes the next event.
func (q *queue) drop() {
	last := len(q.events) - 1
	q.events[0] = q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	if last > 0 {
		q.delay(q.events[0].at)
	}
}

// delay puts the next event off to a later time.
func (q *queue) delay(at float64) {
	e := q.events
	e[0].at = at
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(e) {
			return
		}
		if child+1 < len(e) && e[child+1].before(&e[child]) {
			child++
		}
		if !e[child].before(&e[i]) {
			return
		}
		e[i], e[child] = e[child], e[i]
		i = child
	}
}
