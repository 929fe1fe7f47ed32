package events

import (
	"encoding/binary"

	"example.org/pilotfish/internal/hash"
)

// partTokens is the minimum size of a part of a prompt, in tokens. Blocks of vLLM have 16 by default: a part is several.
const partTokens = 128

// chain is a prompt up to the end of a block.
type chain struct {
	key    uint64
	tokens int
	part   bool // a part of the prompt ends with the block
}

// extend adds a block.
func (c chain) extend(block []uint32) chain {
	tokens := c.tokens + len(block)
	return chain{digest(c.key, block), tokens, tokens/partTokens > c.tokens/partTokens}
}

// digest returns the hash of a prompt that is extended by a block.
func digest(before uint64, block []uint32) uint64 {
	text := make([]byte, 0, 4*64)
	for _, token := range block {
		text = binary.LittleEndian.AppendUint32(text, token)
	}
	return hash.Block(before, text)
}
