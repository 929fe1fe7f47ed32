package recent

import (
	"time"

	"example.org/pilotfish/internal/hash"
)

// Keys is a bounded set of keys above 0 with the time of each key's last use. It is an 8-way set-associative hash table: a
// key can be in any of the 8 slots of its bucket. When a bucket is full, the table doubles; at its maximum size, the least
// recently used key of the bucket is evicted. A slot takes 12 bytes, the table at most 1.5 MiB. The zero value is empty.
type Keys struct {
	keys []uint64 // by slot; 0 is a free slot
	uses []uint32 // time of last use in milliseconds, modulo 2^32 (49 days): only differences are meaningful
	n    int
	base time.Time // when uses was 0: ages follow the monotonic clock, which does not step
}

const (
	ways               = 8
	minSlots, maxSlots = 8 * ways, 1 << 17
)

func (k *Keys) milliseconds(at time.Time) uint32 { return uint32(at.Sub(k.base).Milliseconds()) }

func (k *Keys) age(now time.Time, use uint32) time.Duration {
	return time.Duration(int32(k.milliseconds(now)-use)) * time.Millisecond
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.n }

// bucket returns the first slot of a key's bucket.
func (k *Keys) bucket(key uint64) int { return int(hash.Mix(key)) & (len(k.keys) - 1) &^ (ways - 1) }

// find returns the slot of a key; ok is false if the key is not in the set.
func (k *Keys) find(key uint64) (place int, ok bool) {
	if k.n == 0 {
		return 0, false
	}
	b := k.bucket(key)
	for i, other := range k.keys[b : b+ways] {
		if other == key {
			return b + i, true
		}
	}
	return 0, false
}

// Has reports whether a key is in the set.
func (k *Keys) Has(key uint64) bool {
	_, ok := k.find(key)
	return ok
}

// Age returns the time since the last use of a key; ok is false if the key is not in the set.
func (k *Keys) Age(key uint64, now time.Time) (since time.Duration, ok bool) {
	place, ok := k.find(key)
	if !ok {
		return 0, false
	}
	return k.age(now, k.uses[place]), true
}

// Put adds a key, or updates the time of its last use.
func (k *Keys) Put(key uint64, at time.Time) {
	if k.base.IsZero() {
		k.base = at.Add(-time.Duration(at.Nanosecond()) % time.Millisecond) // a whole millisecond, with the monotonic reading
	}
	k.put(key, k.milliseconds(at))
}

func (k *Keys) put(key uint64, use uint32) {
	if len(k.keys) == 0 {
		k.keys, k.uses = make([]uint64, minSlots), make([]uint32, minSlots)
	}
	b := k.bucket(key)
	free, first := -1, b
	for i := b; i < b+ways; i++ {
		switch {
		case k.keys[i] == key:
			k.uses[i] = use
			return
		case k.keys[i] == 0:
			free = i
		case int32(k.uses[i]-k.uses[first]) < 0:
			first = i
		}
	}
	switch {
	case free >= 0:
		k.n++
	case len(k.keys) < maxSlots:
		k.grow()
		k.put(key, use)
		return
	default:
		free = first
	}
	k.keys[free], k.uses[free] = key, use
}

// grow doubles the number of slots.
func (k *Keys) grow() {
	bigger := Keys{keys: make([]uint64, 2*len(k.keys)), uses: make([]uint32, 2*len(k.keys)), base: k.base}
	for i, key := range k.keys {
		if key != 0 {
			bigger.put(key, k.uses[i])
		}
	}
	*k = bigger
}

// Drop removes a key.
func (k *Keys) Drop(key uint64) {
	if i, ok := k.find(key); ok {
		k.keys[i] = 0
		k.n--
	}
}

// DropFunc removes the keys for which drop returns true, given the time since their last use.
func (k *Keys) DropFunc(now time.Time, drop func(key uint64, since time.Duration) bool) {
	for i, key := range k.keys {
		if key != 0 && drop(key, k.age(now, k.uses[i])) {
			k.keys[i] = 0
			k.n--
		}
	}
}
