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

const (
	// slot is the time that one slot of the calendar covers, slots how many
	// there are: enough for the polls of a minute.
	slot  = 100 * time.Millisecond
	slots = 1024
)

// events is a priority queue ordered by (time, rank, sequence), so that equal
// inputs give equal runs. A heap holds only what is due soon. The rest lies
// unsorted in a calendar, by time, so that the heap stays in the processor's
// cache however many polls are planned (a coarse form of Brown's calendar queue).
// With one heap for all, a simulation of 200,000 polls per interval takes 11 %
// longer.
type events struct {
	near     eventHeap // due before slot number edge
	edge     int64
	calendar [slots][]event // those of slots edge to edge+slots-1
	planned  int            // how many the calendar holds
	far      eventHeap      // due later
	seq      uint64
}

func slotOf(at time.Duration) int64 { return int64(at / slot) }

func (es *events) add(at time.Duration, r rank, what happening) {
	es.seq++
	es.place(event{at: at, seq: es.seq, rank: r, what: what})
}

func (es *events) place(e event) {
	switch n := slotOf(e.at); {
	case n < es.edge:
		es.near.push(e)
	case n < es.edge+slots:
		es.calendar[n%slots] = append(es.calendar[n%slots], e)
		es.planned++
	default:
		es.far.push(e)
	}
}

// next is when the earliest event is due; ok is false when there is none.
func (es *events) next() (at time.Duration, ok bool) {
	for len(es.near) == 0 {
		if es.planned == 0 {
			if len(es.far) == 0 {
				return 0, false
			}
			es.edge = slotOf(es.far[0].at)
		}
		for len(es.far) > 0 && slotOf(es.far[0].at) < es.edge+slots {
			es.place(es.far.pop())
		}
		es.turn()
	}
	return es.near[0].at, true
}

// turn moves the events of the first slot from the calendar to the heap.
func (es *events) turn() {
	now := es.calendar[es.edge%slots]
	es.edge++
	es.planned -= len(now)
	for _, e := range now {
		es.near.push(e)
	}
	clear(now)
	es.calendar[(es.edge-1)%slots] = now[:0]
}

// pop removes the event that is due first; call next before.
func (es *events) pop() event { return es.near.pop() }

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
