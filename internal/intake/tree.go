package intake

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a configured JSON Pointer: its bytes, and the names in it. The
// second keeps all nodes of a tree within the bits of one word.
const (
	maxPointer = 256
	maxNames   = 64 / int(members-1)
)

// node is one name on the way to wanted members. Either it is wanted itself, or it has children.
type node struct {
	name     string
	pointer  string
	want     member
	leaves   int    // wanted members at or below
	bit      uint64 // this node among all of the tree
	children []*node
}

// tree joins the pointers into the tree that a walk follows along with a body.
func (f Fields) tree() (*node, error) {
	root := &node{}
	var nodes int
	for m, pointer := range f.pointers() {
		if member(m) == none {
			continue
		}
		wrong := checkPointer(pointer)
		if wrong == "" {
			wrong = root.add(member(m), jsontext.Pointer(pointer), &nodes)
		}
		if wrong != "" {
			return nil, &PointerError{Field: memberNames[m], Pointer: pointer, Reason: wrong}
		}
	}
	return root, nil
}

// checkPointer returns what is wrong with a pointer by itself, or "".
func checkPointer(p string) (wrong string) {
	switch {
	case p[0] != '/':
		return "it must start with a slash"
	case len(p) > maxPointer:
		return fmt.Sprintf("it is longer than %d bytes", maxPointer)
	case strings.Count(p, "/") > maxNames:
		return fmt.Sprintf("it has more than %d names", maxNames)
	case !jsontext.Pointer(p).IsValid():
		return "it must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name"
	}
	return ""
}

// add puts m below the root n. It returns how the pointer collides with an earlier one, or "".
func (n *node) add(m member, p jsontext.Pointer, nodes *int) (wrong string) {
	for name := range p.Tokens() {
		if n.want != none {
			return fmt.Sprintf("it leads through %q, which is the %s", n.pointer, memberNames[n.want])
		}
		n.leaves++
		c := n.child([]byte(name))
		if c == nil {
			c = &node{name: name, pointer: string(jsontext.Pointer(n.pointer).AppendToken(name)), bit: 1 << *nodes}
			n.children = append(n.children, c)
			*nodes++
		}
		n = c
	}
	switch {
	case n.want != none:
		return "it is already the " + memberNames[n.want]
	case len(n.children) > 0:
		return "other members are within it"
	}
	n.want, n.leaves = m, 1
	return ""
}

func (n *node) child(name []byte) *node {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}
