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
	rankQueue
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

// events is a binary heap ordered by (time, rank, sequence), so that equal
// inputs give equal runs.
type events struct {
	heap []event
	seq  uint64
}

func (es *events) add(at time.Duration, r rank, what happening) {
	es.seq++
	h := append(es.heap, event{at: at, seq: es.seq, rank: r, what: what})
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	es.heap = h
}

// next is when the earliest event is due; ok is false when there is none.
func (es *events) next() (at time.Duration, ok bool) {
	if len(es.heap) == 0 {
		return 0, false
	}
	return es.heap[0].at, true
}

func (es *events) pop() event {
	h := es.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	es.heap = h
	return top
}
