package dump

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type node struct {
	name   string
	next   *node
	counts map[string]int
	times  []time.Time
	any    any
	cache  int
}

// Every change below the value changes the text, except one of a skipped field.
func TestOf(t *testing.T) {
	build := func() *node {
		n := &node{name: "a", next: &node{name: "b"}, counts: map[string]int{"x": 1, "y": 2}, times: []time.Time{time.Unix(5, 0)}, any: node{name: "c"}}
		n.next.next = n
		return n
	}
	n := build()
	before := Of(n, "node.cache")
	assert.Equal(t, before, Of(n, "node.cache"))
	for name, change := range map[string]func(){
		"a field":             func() { n.name = "z" },
		"behind a pointer":    func() { n.next.name = "z" },
		"a value of a map":    func() { n.counts["x"] = 3 },
		"a key of a map":      func() { n.counts["z"] = 0 },
		"an element":          func() { n.times[0] = n.times[0].Add(1) },
		"a length":            func() { n.times = n.times[:0] },
		"behind an interface": func() { n.any = node{name: "d"} },
	} {
		n = build()
		before := Of(n, "node.cache")
		change()
		assert.NotEqual(t, before, Of(n, "node.cache"), name)
	}
	n = build()
	before = Of(n, "node.cache")
	n.cache = 7
	assert.Equal(t, before, Of(n, "node.cache"))
	assert.NotEqual(t, before, Of(n))
}
