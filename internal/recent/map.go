// Package recent holds bounded collections that evict the least recently used entries.
package recent

import (
	"iter"
	"maps"
)

// Map is a bounded map of two generations. When the young generation is full, the old one is dropped and the young one
// becomes the old one. The result never depends on Go's random map order, so equal inputs give equal contents.
type Map[V any] struct {
	limit      int
	keep       func(V) bool
	young, old map[uint64]V
}

// NewMap returns a map of at most limit values. Values for which keep returns true are never dropped,
// even if they are more than limit. keep can be nil.
func NewMap[V any](limit int, keep func(V) bool) *Map[V] {
	return &Map[V]{limit: limit, keep: keep, young: map[uint64]V{}, old: map[uint64]V{}}
}

// Get returns the value of a key.
func (m *Map[V]) Get(key uint64) (V, bool) {
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	return v, ok
}

// Put sets the value of a key and moves it to the young generation.
func (m *Map[V]) Put(key uint64, v V) {
	if _, ok := m.young[key]; !ok {
		delete(m.old, key)
		if len(m.young) >= m.limit/2 {
			m.old, m.young = m.young, m.old
			maps.DeleteFunc(m.young, func(_ uint64, v V) bool { return m.keep == nil || !m.keep(v) })
		}
	}
	m.young[key] = v
}

// All yields the keys and values, those of the young generation first.
func (m *Map[V]) All() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		for _, generation := range []map[uint64]V{m.young, m.old} {
			for key, v := range generation {
				if !yield(key, v) {
					return
				}
			}
		}
	}
}
