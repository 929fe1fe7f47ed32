package sim

import "time"

// rank orders events of one instant: what frees capacity comes before what
// needs it.
type rank uint8

const (
	rankFinish rank = iota
	rankFleet
	rankReport
	rankTimeout
	rankArrival
)

// happening is what an event does.
type happening interface{ happen(w *world) }

type event struct {
	at   time.Duration // since the start of the trace
	seq  uint64
	rank rank
	what happening
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.rank != o.rank {
		return e.rank < o.rank
	}
	return e.seq < o.seq
}

// events is a priority queue ordered by (time, rank, sequence), so that equal inputs give
// equal runs.
type events struct {
	heap eventHeap
	seq  uint64
}

func (es *events) add(at time.Duration, r rank, what happening) {
	es.seq++
	es.heap.push(event{at: at, seq: es.seq, rank: r, what: what})
}

// next is when the earliest event is due; ok is false when there is none.
func (es *events) next() (at time.Duration, ok bool) {
	if len(es.heap) == 0 {
		return 0, false
	}
	return es.heap[0].at, true
}

// pop removes the event that is due first; call next before.
func (es *events) pop() event { return es.heap.pop() }

// eventHeap is a binary heap, the earliest event first. container/heap would
// allocate for every event.
type eventHeap []event

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
	*h = s
}

func (h *eventHeap) pop() event {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s[last] = event{}
	s = s[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
	return top
}
