package intake

import (
	"fmt"
	"slices"
	"strings"

	"example.org/pilotfish/internal/hash"
)

// Part is one of several pieces of data that a job needs.
type Part struct {
	// Key is the hash that identifies the piece in caches. For a piece that is a project it is the project's Key.
	Key uint64
	// Bytes is the size; 0 if unknown.
	Bytes float64
}

// Parts are the pieces of data that a job needs, either a set of projects or a chain of blocks. A
// chain is the prefix of a text in blocks of fixed size. The key of a block also hashes all blocks
// before it, so two jobs share the blocks of their common prefix. Parts is not empty and immutable.
type Parts struct {
	Parts []Part
	// Set is true for a set, false for a chain.
	Set bool
}

// MaxParts is the maximum number of pieces of one job; further blocks of a text are ignored.
const MaxParts = 256

// blocks appends the blocks of a text to a chain. An incomplete last block is ignored, because its
// hash changes when the text grows; a text shorter than one block is one block. The keys do not
// include the project until seal.
func blocks(chain []Part, text []byte, size int) []Part {
	h := uint64(0)
	if n := len(chain); n > 0 {
		h = chain[n-1].Key
	}
	if chain == nil {
		chain = make([]Part, 0, min(1+len(text)/size, MaxParts))
	}
	for short := len(chain) == 0; len(text) > 0 && len(chain) < MaxParts && (short || len(text) >= size); short = false {
		n := min(size, len(text))
		h = hash.Block(h, text[:n])
		chain, text = append(chain, Part{Key: h, Bytes: float64(n)}), text[n:]
	}
	return chain
}

// seal combines the keys of a chain with its project, and gives the first block the project's own
// key. So equal texts of two projects, such as two models, do not count as the same data.
func seal(chain []Part, project uint64) *Parts {
	for i := range chain {
		chain[i].Key = hash.Pair(project, chain[i].Key)
	}
	chain[0].Key = project
	return &Parts{Parts: chain}
}

// maxSeveral is the maximum number of projects in an array.
const maxSeveral = 64

// set returns the name and the parts of a job that needs several projects. If name is not empty, it is
// a further project and names the set. Otherwise the set is named after all projects: their names joined
// by "+", or the hash of that if it is too long.
func set(name string, several []string) (string, *Parts) {
	slices.Sort(several)
	if name == "" {
		if name = strings.Join(several, "+"); len(several) == 1 {
			return name, nil
		}
		if len(name) > MaxProject {
			name = fmt.Sprintf("%016x", hash.Project(name))
		}
	} else if !slices.Contains(several, name) {
		several = append(several, name)
	}
	s := &Parts{Set: true}
	for _, one := range several {
		s.Parts = append(s.Parts, Part{Key: Key(one)})
	}
	return name, s
}
