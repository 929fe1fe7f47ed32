package events

import (
	"encoding/binary"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/prompts"
)

const (
	// partTokens is the minimum size of a part of a prompt, in tokens. Blocks of vLLM have 16 by default: a part is several.
	partTokens = 128
	// maxBlockTokens bounds the size of a block, in tokens.
	maxBlockTokens = 1024
	// maxBlocks bounds the known blocks of a server: about 20 MB.
	maxBlocks = 1 << 18
)

// cache is the known blocks of a server.
type cache struct {
	blocks map[uint64]chain // the prompt up to the end of a block, by the server's hash
	next   uint64           // sequence number of the next batch; 0 before the first one
	size   int              // tokens of a block; 0 is unknown
	// before returns the prompt before a block, if a job has shown it.
	before func(block []uint32) (c chain, ok bool)
	// counted is called for each event; used is false if it was ignored.
	counted func(used bool)
}

// apply adopts a batch of events, and returns the changes for the pool.
func (c *cache) apply(sequence uint64, batch []event) (changes []prompts.Change) {
	switch {
	case sequence < c.next: // the server restarted
		clear(c.blocks)
		changes = append(changes, prompts.Change{Cleared: true})
	case sequence > c.next, c.next == 0:
		changes = append(changes, prompts.Change{Lost: true})
	}
	c.next = sequence + 1
	for i := range batch {
		e, n := &batch[i], len(changes)
		if e.kind == removed && n > 0 && changes[n-1].Stored != nil || n == 0 {
			changes = append(changes, prompts.Change{})
		}
		last, used := &changes[len(changes)-1], !e.other
		switch {
		case e.kind == cleared:
			clear(c.blocks)
			*last = prompts.Change{Cleared: true} // earlier members no longer matter
		case e.kind == removed && used:
			last.Removed = append(last.Removed, c.remove(e)...)
		case e.kind == stored && used && len(c.blocks)+len(e.hashes) > maxBlocks:
			clear(c.blocks)
			*last, used = prompts.Change{Lost: true}, false
		case e.kind == stored && used:
			var parts []uint64
			parts, used = c.store(e)
			last.Stored = append(last.Stored, parts...)
		default:
			used = false
		}
		c.counted(used)
	}
	return changes
}

// remove returns the parts of prompts that end with the removed blocks.
func (c *cache) remove(e *event) (parts []uint64) {
	for _, h := range e.hashes {
		b, known := c.blocks[h]
		delete(c.blocks, h)
		if known && b.part {
			parts = append(parts, b.key)
		}
	}
	return parts
}

// store adds the blocks of an event. It returns the keys of the parts of prompts that end with one of these blocks.
// used is false if the event is invalid or the prefix of the blocks is unknown.
func (c *cache) store(e *event) (parts []uint64, used bool) {
	if e.size < 1 || e.size > maxBlockTokens || len(e.tokens) != e.size*len(e.hashes) || len(e.hashes) == 0 {
		return nil, false
	}
	c.size = e.size
	at, known := c.blocks[e.parent]
	if e.parent != 0 && !known {
		if at, known = c.before(e.tokens[:c.size]); !known {
			return nil, false
		}
		c.blocks[e.parent] = at
	}
	for i, h := range e.hashes {
		if at = at.extend(e.tokens[i*c.size:][:c.size]); at.part {
			parts = append(parts, at.key)
		}
		c.blocks[h] = at
	}
	return parts, true
}

// chain is a prompt up to the end of a block.
type chain struct {
	key    uint64
	tokens int
	part   bool // a part of the prompt ends with the block
}

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
