package pool

import (
	"time"

	"example.org/pilotfish/internal/hash"
)

// table is a bounded set of keys above 0, with an instant for each. A key has 8 places, side by side. A table that
// finds them all taken doubles; one of full size forgets the key of the earliest instant there. It takes 12 bytes a
// place: 1.5 MiB at most, for 100,000 keys 16 bytes each.
type table struct {
	keys  []uint64 // 0 is nothing
	marks []uint32
	n     int
}

const (
	ways                    = 8
	leastPlaces, mostPlaces = 8 * ways, 1 << 17
)

// mark is an instant in milliseconds. Marks are compared by their difference, as they begin anew every
// 49 days.
func mark(now time.Time) uint32 { return uint32(now.UnixMilli()) }

// since is how long after a mark an instant is.
func since(now time.Time, earlier uint32) time.Duration {
	return time.Duration(int32(mark(now)-earlier)) * time.Millisecond
}

// bucket is where the places of a key begin.
func (t *table) bucket(key uint64) int { return int(hash.Mix(key)) & (len(t.keys) - 1) &^ (ways - 1) }

// find returns the place of a key; ok is false if it is not there.
func (t *table) find(key uint64) (place int, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	b := t.bucket(key)
	for i, k := range t.keys[b : b+ways] {
		if k == key {
			return b + i, true
		}
	}
	return 0, false
}

// put sets the mark of a key.
func (t *table) put(key uint64, mark uint32) {
	if len(t.keys) == 0 {
		t.keys, t.marks = make([]uint64, leastPlaces), make([]uint32, leastPlaces)
	}
	b := t.bucket(key)
	free, earliest := -1, b
	for i := b; i < b+ways; i++ {
		switch {
		case t.keys[i] == key:
			t.marks[i] = mark
			return
		case t.keys[i] == 0:
			free = i
		case int32(t.marks[i]-t.marks[earliest]) < 0:
			earliest = i
		}
	}
	switch {
	case free >= 0:
		t.n++
	case len(t.keys) < mostPlaces:
		t.grow()
		t.put(key, mark)
		return
	default:
		free = earliest
	}
	t.keys[free], t.marks[free] = key, mark
}

// grow doubles the places.
func (t *table) grow() {
	bigger := table{keys: make([]uint64, 2*len(t.keys)), marks: make([]uint32, 2*len(t.keys))}
	for i, key := range t.keys {
		if key != 0 {
			bigger.put(key, t.marks[i])
		}
	}
	*t = bigger
}

// drop takes a key out.
func (t *table) drop(key uint64) {
	if i, ok := t.find(key); ok {
		t.keys[i] = 0
		t.n--
	}
}

// dropFunc takes out all keys for which drop returns true.
func (t *table) dropFunc(drop func(key uint64, mark uint32) bool) {
	for i, key := range t.keys {
		if key != 0 && drop(key, t.marks[i]) {
			t.keys[i] = 0
			t.n--
		}
	}
}
