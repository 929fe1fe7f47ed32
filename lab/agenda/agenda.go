// Package agenda is the event queue of the simulators: the earliest entry comes first.
package agenda

import "cmp"

// Entry is a planned event: What happens at the instant At.
type Entry[At cmp.Ordered, T any] struct {
	At     At
	What   T
	rank   uint8
	number uint64
}

func (e *Entry[At, T]) before(o *Entry[At, T]) bool {
	if e.At != o.At {
		return e.At < o.At
	}
	if e.rank != o.rank {
		return e.rank < o.rank
	}
	return e.number < o.number
}

// Agenda is a binary heap. Entries of the same instant are ordered by rank, then by the order in which they were
// first added, so that equal inputs give equal runs. container/heap would allocate for every entry.
type Agenda[At cmp.Ordered, T any] struct {
	heap  []Entry[At, T]
	added uint64
}

// Add adds an entry.
func (a *Agenda[At, T]) Add(at At, rank uint8, what T) {
	a.added++
	a.push(Entry[At, T]{At: at, What: what, rank: rank, number: a.added})
}

// Again adds an entry that Take returned, for another instant. It keeps its rank and number.
func (a *Agenda[At, T]) Again(e Entry[At, T], at At) {
	e.At = at
	a.push(e)
}

// Len returns the number of entries.
func (a *Agenda[At, T]) Len() int { return len(a.heap) }

// Next returns the instant of the first entry; ok is false if there is none.
func (a *Agenda[At, T]) Next() (at At, ok bool) {
	if len(a.heap) == 0 {
		return at, false
	}
	return a.heap[0].At, true
}

func (a *Agenda[At, T]) push(e Entry[At, T]) {
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.heap[i].before(&a.heap[parent]) {
			return
		}
		a.heap[i], a.heap[parent] = a.heap[parent], a.heap[i]
		i = parent
	}
}

// Take removes and returns the first entry. It panics if there is none.
func (a *Agenda[At, T]) Take() Entry[At, T] {
	top, last := a.heap[0], len(a.heap)-1
	a.heap[0], a.heap[last] = a.heap[last], Entry[At, T]{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if a.heap[c].before(&a.heap[least]) {
				least = c
			}
		}
		if least == i {
			return top
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}
