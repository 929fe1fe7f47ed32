package intake

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// headMember is a wanted member that is not in the body.
type headMember struct {
	Place
	want member
	part int // of the project
}

// node is one name on the way to wanted members of a body. Either it is wanted
// itself, or it has children.
type node struct {
	name     string
	pointer  string
	want     member
	part     int    // of the project
	leaves   int    // wanted members at or below
	bit      uint64 // this node among all of the tree
	children []*node
}

// place puts a wanted member below the root n. What is wrong with its pointer goes
// to f.
func (n *node) place(f *settings.Faults, key, pointer string, m member, part int, nodes *int) {
	if !strings.HasPrefix(pointer, "/") {
		f.Add(key, "%q is not a JSON Pointer such as /project_id", pointer)
		return
	}
	wrong := checkPointer(pointer)
	if wrong == "" {
		wrong = n.add(m, part, jsontext.Pointer(pointer), nodes)
	}
	if wrong != "" {
		f.Add(key, "%q %s", pointer, wrong)
	}
}

// checkPointer returns what is wrong with a pointer by itself, or "".
func checkPointer(p string) (wrong string) {
	switch {
	case len(p) > maxPointer:
		return fmt.Sprintf("is longer than %d bytes", maxPointer)
	case strings.Count(p, "/") > maxNames:
		return fmt.Sprintf("has more than %d names", maxNames)
	case !jsontext.Pointer(p).IsValid():
		return "must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name"
	}
	return ""
}

// add puts m below the root n. It returns how the pointer collides with an
// earlier one, or "".
func (n *node) add(m member, part int, p jsontext.Pointer, nodes *int) (wrong string) {
	for name := range p.Tokens() {
		if n.want != none {
			return fmt.Sprintf("leads through %q, which is the %v", n.pointer, n.want)
		}
		n.leaves++
		c := n.child([]byte(name))
		if c == nil && *nodes == maxNodes {
			return fmt.Sprintf("is one too many: all pointers together have more than %d names", maxNodes)
		}
		if c == nil {
			c = &node{name: name, pointer: string(jsontext.Pointer(n.pointer).AppendToken(name)), bit: 1 << *nodes}
			n.children = append(n.children, c)
			*nodes++
		}
		n = c
	}
	switch {
	case n.want != none:
		return fmt.Sprintf("is already the %v", n.want)
	case len(n.children) > 0:
		return "has other members within it"
	}
	n.want, n.part, n.leaves = m, part, 1
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
