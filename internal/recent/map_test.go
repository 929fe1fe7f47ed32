package recent

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The bound drops what was not used lately, and never what is to be kept.
func TestMapIsBounded(t *testing.T) {
	m := NewMap(100, func(open int) bool { return open > 0 })
	m.Put(5, 1)
	m.Put(7, 2)
	m.Put(8, 0)
	for key := range uint64(1000) {
		m.Put(1000+key, 0)
		assert.LessOrEqual(t, len(m.young)+len(m.old), 102)
	}
	assert.Equal(t, []int{1, 2}, []int{value(m, 5), value(m, 7)})
	for key := uint64(3000); len(m.young) > 10; key++ {
		m.Put(key, 0) // until the young half has room
	}
	for _, key := range slices.Collect(maps.Keys(m.old))[:5] {
		m.Put(key, 0) // young again
	}
	for key := range m.young {
		assert.NotContains(t, m.old, key, "in both halves")
	}
	assert.Equal(t, -1, value(m, 8))
	m.Put(7, 0)
	m.Put(5, 0)
	for key := range uint64(1000) {
		m.Put(5000+key, 0)
		m.Put(9, -2)
	}
	assert.LessOrEqual(t, len(m.old), 50)
	assert.Equal(t, []int{-1, -2, -1}, []int{value(m, 7), value(m, 9), value(m, 123456)})
	assert.NotContains(t, m.young, uint64(123456), "Get remembers nothing")
}

// value is the value of a key, or -1.
func value(m *Map[int], key uint64) int {
	if v, ok := m.Get(key); ok {
		return v
	}
	return -1
}
