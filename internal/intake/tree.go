package intake

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// headMember is a wanted member in a header or in the path.
type headMember struct {
	Place
	want member
	part int // index among the places of the member
}

// node is one name in the pointers to wanted members of the body. A node is either a
// wanted member or has children.
type node struct {
	name     string
	pointer  string
	want     member
	part     int // index among the places of the member
	leaves   int // number of wanted members at or below this node
	index    int // number of this node in the tree
	children []*node
}

// place adds a wanted member to the tree with root n, or adds to f what is wrong with its
// pointer. nodes counts the nodes of the tree.
func (n *node) place(f *settings.Faults, key, pointer string, m member, part int, nodes *int) {
	wrong := ""
	switch p := jsontext.Pointer(pointer); {
	case !strings.HasPrefix(pointer, "/"):
		wrong = "is not a JSON Pointer such as /project_id, nor a section such as {header: x-project}"
		if name := strings.TrimPrefix(pointer, "$."); settings.HostName(name) { // a plain name, or a JSONPath
			wrong += "; write /" + strings.ReplaceAll(name, ".", "/")
		}
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

// add adds m to the tree with root n. It returns how the pointer conflicts with an
// earlier pointer, or "".
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
		return "contains another member"
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
