package selection

import "math/rand/v2"

// least finds the smallest of the values offered to it, each of several
// equals with the same probability. The zero value has seen none.
type least struct {
	index int
	value float64
	ties  int
}

// offer takes the value of the view at index into account.
func (l *least) offer(index int, value float64, rng *rand.Rand) {
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
