package intake

import (
	"fmt"
	"slices"
	"strings"

	"example.org/pilotfish/internal/hash"
)

// Part is one of several pieces of data that a job needs.
type Part struct {
	// Key is the hash by which pools know the piece. That of a project by itself is Facts.Key.
	Key uint64
	// Bytes is its size; 0 is not known.
	Bytes float64
}

// Parts are the pieces of data that a job needs. A chain is the beginning of a text, block by
// block: the key of each block hashes all before it, so that jobs share the blocks up to where their
// texts part. A set has no order. There is at least one, and nobody changes them.
type Parts struct {
	Parts []Part
	// Set is a set; else it is a chain.
	Set bool
}

// MaxParts bounds the pieces of one job; of a longer text the rest counts for nothing.
const MaxParts = 256

// blocks appends the blocks of a text to a chain. Only full blocks count: what is left
// of the text at its end will be part of another block when the text grows. A text shorter than one
// block is one. The keys are of the blocks alone until seal.
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

// seal makes the first block of a chain the project, and the keys of the others those of blocks
// of the project: equal texts for two models are not the same data.
func seal(chain []Part, project uint64) *Parts {
	for i := range chain {
		chain[i].Key = hash.Pair(project, chain[i].Key)
	}
	chain[0].Key = project
	return &Parts{Parts: chain}
}

// maxSeveral bounds the projects of an array.
const maxSeveral = 64

// set is what a job needs that names several projects, beside one with a name of its own if that is not
// empty. Without, the set's name is those of all, or their hash where that is too long.
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
