package pool

import "maps"

// generations is a bounded map that forgets what was not touched lately: when
// the young half is full, the old half is dropped and they change places. It
// never depends on map order, so equal inputs give equal contents.
type generations[V any] struct {
	limit      int
	keep       func(V) bool // what is not forgotten; nil is nothing
	young, old map[uint64]V
}

func newGenerations[V any](limit int) *generations[V] {
	return &generations[V]{limit: limit, young: map[uint64]V{}, old: map[uint64]V{}}
}

func (g *generations[V]) get(key uint64) (V, bool) {
	if v, ok := g.young[key]; ok {
		return v, true
	}
	v, ok := g.old[key]
	return v, ok
}

func (g *generations[V]) put(key uint64, v V) {
	if _, ok := g.young[key]; !ok {
		delete(g.old, key)
		if len(g.young) >= g.limit/2 {
			g.old, g.young = g.young, g.old
			maps.DeleteFunc(g.young, func(_ uint64, v V) bool { return g.keep == nil || !g.keep(v) })
		}
	}
	g.young[key] = v
}
