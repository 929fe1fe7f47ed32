package pool

import (
	"time"

	"example.org/pilotfish/internal/intake"
)

// life is how long after its last use an upstream keeps a part of a text: 0 is for ever. A cache that
// forgets what was used least lately keeps all about equally long (Che's approximation). Nobody tells how
// long; jobs tell how much of their texts they found.
type life time.Duration

// lifeStep is by which factor a job changes it.
const lifeStep = 1.1

// keeps reports whether m still has a part that was used so long ago.
func (m *member) keeps(age time.Duration) bool { return m.life == 0 || age <= time.Duration(m.life) }

// ages says how long ago the last of the parts that are at m was used, 0 if that is not known, and whether m
// had the next one, too, so long ago that it is taken to be gone.
func (m *member) ages(parts []intake.Part, first int, now time.Time) (kept time.Duration, lost bool) {
	if first > 0 {
		if place, ok := m.assumed.find(parts[first-1].Key); ok {
			kept = since(now, m.assumed.marks[place])
		}
	}
	if first < len(parts) {
		_, lost = m.assumed.find(parts[first].Key)
	}
	return kept, lost
}

// learn takes in how many bytes more than expected a job found, of blocks of that size. Less than a block is
// nothing: servers have blocks of their own.
func (l *life) learn(more, block float64, kept time.Duration, lost bool) {
	switch {
	case more <= -block && kept > 0 && *l == 0:
		*l = life(kept)
	case more <= -block && kept > 0:
		*l = max(life(float64(*l)/lifeStep), life(time.Second))
	case more >= block && lost:
		*l = life(float64(*l) * lifeStep)
	}
}
