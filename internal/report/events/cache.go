package events

import (
	"example.org/pilotfish/internal/prompts"
)

const (
	// maxBlockTokens bounds the size of a block, in tokens.
	maxBlockTokens = 1024
	// maxBlocks bounds the blocks that are known of a server: about 20 MB.
	maxBlocks = 1 << 18
)

// cache is what a server has cached.
type cache struct {
	blocks map[uint64]chain // the prompt up to the end of a block, by the server's hash
	next   uint64           // sequence number of the next batch; 0 before the first one
	size   int              // tokens of a block; 0 is unknown
	// before returns the prompt before a block with these tokens, if jobs have shown it.
	before func(block []uint32) (c chain, ok bool)
	// counted is called for each event. used is false if nothing was learned from it.
	counted func(used bool)
}

// apply returns what a batch of events changes.
func (c *cache) apply(sequence uint64, batch []event) (changes []prompts.Change) {
	switch {
	case sequence < c.next: // the server restarted
		c.clear()
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
		used := e.kind == removed || e.kind == cleared
		switch last := &changes[len(changes)-1]; e.kind {
		case cleared:
			c.clear()
			*last = prompts.Change{Cleared: true} // nothing of the same change counts any more
		case removed:
			last.Removed = append(last.Removed, c.remove(e)...)
		case stored:
			var parts []uint64
			parts, used = c.store(e)
			last.Stored = append(last.Stored, parts...)
		}
		c.counted(used)
	}
	return changes
}

func (c *cache) clear() { clear(c.blocks) }

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

// store returns the parts of prompts that end with the stored blocks. used is false if some blocks cannot be used: blocks after
// an unknown one, blocks that plain prompts do not find, and blocks beyond the bound.
func (c *cache) store(e *event) (parts []uint64, used bool) {
	if e.other || e.size < 1 || e.size > maxBlockTokens || len(e.tokens) != e.size*len(e.hashes) || len(e.hashes) == 0 {
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
		if len(c.blocks) >= maxBlocks {
			return parts, false
		}
		if at = at.extend(e.tokens[i*c.size:][:c.size]); at.part {
			parts = append(parts, at.key)
		}
		c.blocks[h] = at
	}
	return parts, true
}
