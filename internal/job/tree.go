package job

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

// tree joins the pointers into the tree that a Reader walks along with a body.
func (f Fields) tree() (*node, error) {
	root := &node{}
	nodes := 0
	owner := f.pointers()
	for m := project; m < members; m++ {
		refuse := func(format string, args ...any) error {
			return &PointerError{Field: memberNames[m], Pointer: owner[m], Reason: fmt.Sprintf(format, args...)}
		}
		p := jsontext.Pointer(owner[m])
		switch {
		case len(p) > maxPointer:
			return nil, refuse("it is longer than %d bytes", maxPointer)
		case p[0] != '/':
			return nil, refuse("it must start with a slash")
		case !p.IsValid():
			return nil, refuse("it must be valid UTF-8, with ~0 for a tilde and ~1 for a slash within a name")
		}
		if strings.Count(owner[m], "/") > maxNames {
			return nil, refuse("it has more than %d names", maxNames)
		}
		at := root
		for name := range p.Tokens() {
			if at.want != none {
				return nil, refuse("it leads through %q, which is the %s", at.pointer, memberNames[at.want])
			}
			at.leaves++
			next := at.child([]byte(name))
			if next == nil {
				next = &node{name: name, pointer: string(jsontext.Pointer(at.pointer).AppendToken(name)), bit: 1 << nodes}
				at.children = append(at.children, next)
				nodes++
			}
			at = next
		}
		switch {
		case at.want != none:
			return nil, refuse("it is already the %s", memberNames[at.want])
		case len(at.children) > 0:
			return nil, refuse("other members are within it")
		}
		at.want, at.leaves = m, 1
	}
	return root, nil
}

func (n *node) child(name []byte) *node {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}
