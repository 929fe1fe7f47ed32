package selection

import (
	"math"
	"math/rand/v2"
)

// Least finds the smallest of the values offered to it. If several are equal, each is returned with the same
// probability. The zero value is ready to use.
type Least struct {
	index int
	value float64
	ties  int
}

// Offer takes the value of the view at index into account.
func (l *Least) Offer(index int, value float64, rng *rand.Rand) {
	switch {
	case l.ties == 0 || value < l.value:
		l.index, l.value, l.ties = index, value, 1
	case value == l.value:
		l.ties++
		if rng.IntN(l.ties) == 0 {
			l.index = index
		}
	}
}

// Index returns the index of the view with the smallest value.
func (l *Least) Index() int { return l.index }

// noView is the index of a candidate before any view was considered.
const noView = -1

// candidate is a view and its cost.
type candidate struct {
	index int
	cost  float64
}

// noCandidate returns a candidate that every view beats.
func noCandidate() candidate { return candidate{noView, math.Inf(1)} }

// beatenBy reports whether a cost is below the candidate's.
func (c candidate) beatenBy(cost float64) bool { return c.index == noView || cost < c.cost }
