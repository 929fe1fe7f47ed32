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
	part     int // of the project
	leaves   int // wanted members at or below
	index    int // of this node among all of the tree
	children []*node
}

// place puts a wanted member below the root n. What is wrong with its pointer goes
// to f.
func (n *node) place(f *settings.Faults, key, pointer string, m member, part int, nodes *int) {
	wrong := ""
	switch p := jsontext.Pointer(pointer); {
	case !strings.HasPrefix(pointer, "/"):
		wrong = "is not a JSON Pointer such as /project_id"
	case len(pointer) > maxPointer:
		wrong = fmt.Sprintf("is longer than %d bytes", maxPointer)
	case strings.Count(pointer, "/") > maxNames:
		wrong = fmt.Sprintf("has more than %d names", maxNames)
	case !p.IsValid():
		wrong = "must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name"
	default:
		wrong = n.add(m, part, p, nodes)
	}
	if wrong != "" {
		f.Add(key, "%q %s", pointer, wrong)
	}
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
		if c == nil {
			c = &node{name: name, pointer: string(jsontext.Pointer(n.pointer).AppendToken(name)), index: *nodes}
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
