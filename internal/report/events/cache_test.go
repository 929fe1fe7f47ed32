package events

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/prompts"
)

// run returns n consecutive tokens.
func run(from, n uint32) (tokens []uint32) {
	for i := range n {
		tokens = append(tokens, from+i)
	}
	return tokens
}

// keys returns the keys of the parts of a prompt, in blocks of 64 tokens.
func keys(tokens []uint32) (parts []uint64) {
	at := chain{}
	for ; len(tokens) >= 64; tokens = tokens[64:] {
		if at = at.extend(tokens[:64]); at.part {
			parts = append(parts, at.key)
		}
	}
	return parts
}

// fixture is a cache of blocks of 64 tokens, which counts its events.
type fixture struct {
	cache
	used, ignored int
}

func newFixture() *fixture {
	f := &fixture{}
	f.blocks = map[uint64]chain{}
	f.before = func([]uint32) (chain, bool) { return chain{}, false }
	f.counted = func(used bool) {
		if used {
			f.used++
		} else {
			f.ignored++
		}
	}
	return f
}

func stores(parent uint64, tokens []uint32, hashes ...uint64) event {
	return event{kind: stored, parent: parent, tokens: tokens, hashes: hashes, size: 64}
}

// A part is cached from the event of its last block until that block is removed. A part has the same key for all hashes
// that servers use.
func TestParts(t *testing.T) {
	f, prompt := newFixture(), run(1, 256)
	assert.Equal(t, []prompts.Change{{Lost: true, Stored: keys(prompt)[:1]}}, f.apply(0, []event{stores(0, prompt[:192], 11, 12, 13)}))
	assert.Equal(t, []prompts.Change{{Stored: keys(prompt)[1:]}}, f.apply(1, []event{stores(13, prompt[192:], 14)}))
	assert.Equal(t, []prompts.Change{{Removed: keys(prompt)[1:]}}, f.apply(2, []event{{kind: removed, hashes: []uint64{14, 13, 99}}}))
	other := append(run(1, 128), run(900, 128)...)
	assert.Equal(t, []prompts.Change{{Stored: keys(other)[1:]}, {Removed: []uint64{keys(other)[1], keys(other)[0]}}}, f.apply(3, []event{
		stores(12, other[128:], 23, 24), {kind: removed, hashes: []uint64{24}}, {kind: removed, hashes: []uint64{12}},
	}))
	assert.Equal(t, []prompts.Change{{Cleared: true, Stored: keys(prompt)[:1]}}, f.apply(4, []event{
		{kind: removed, hashes: []uint64{11}}, {kind: cleared}, stores(0, prompt[:128], 31, 32),
	}))
	assert.Zero(t, f.ignored)
	assert.Equal(t, 9, f.used)
}

// Missing events and a restart of the server are detected by the sequence numbers.
func TestMissingEvents(t *testing.T) {
	f, prompt := newFixture(), run(1, 256)
	f.apply(7, []event{stores(0, prompt[:128], 11, 12)})
	assert.Empty(t, f.apply(8, nil))
	assert.Equal(t, []prompts.Change{{Lost: true, Stored: keys(prompt)[1:]}}, f.apply(10, []event{stores(12, prompt[128:], 13, 14)}),
		"the blocks before are still linked")
	assert.Equal(t, []prompts.Change{{Cleared: true}}, f.apply(0, []event{stores(12, prompt[128:], 13, 14)}))
	assert.Equal(t, 1, f.ignored, "the restarted server has other hashes")
	assert.Empty(t, f.apply(1, nil))
}

// Blocks after an unknown one are unknown, unless a job had the same tokens. Blocks beyond the bound and blocks of other
// kinds are ignored.
func TestUnknownBlocks(t *testing.T) {
	f, prompt := newFixture(), run(1, 320)
	assert.Equal(t, []prompts.Change{{Lost: true}}, f.apply(0, []event{stores(77, prompt[128:256], 13, 14)}))
	jobs := newTokenizer(&Config{})
	jobs.split(prompt, 64)
	f.before = jobs.before
	assert.Equal(t, []prompts.Change{{Stored: keys(prompt)[1:]}}, f.apply(1, []event{stores(77, prompt[128:256], 13, 14)}))
	branch := append(run(1, 128), run(5000, 128)...)
	assert.Equal(t, []prompts.Change{{Stored: keys(branch)[1:]}}, f.apply(2, []event{stores(77, branch[128:], 23, 24)}), "77 is known now")
	jobs.split(branch, 64)
	jobs.split(branch[64:], 64) // the same block after a different one
	_, known := jobs.before(branch[128:192])
	assert.False(t, known)

	f = newFixture()
	strange := []event{
		{kind: stored, hashes: []uint64{1}, tokens: prompt[:64], size: 63}, {kind: stored, hashes: []uint64{1}, size: 0},
		{kind: stored, size: 64}, {kind: stored, hashes: []uint64{1}, tokens: run(1, 2000), size: 2000},
		{kind: stored, hashes: []uint64{1}, tokens: prompt[:64], size: 64, other: true}, {kind: "BlockMoved"},
	}
	assert.Equal(t, []prompts.Change{{Lost: true}}, f.apply(0, strange))
	assert.Equal(t, len(strange), f.ignored)
	for i := range uint64(maxBlocks) {
		f.blocks[1000+i] = chain{}
	}
	assert.Equal(t, []prompts.Change{{Lost: true}}, f.apply(1, []event{stores(0, prompt[:128], 11, 12)}), "the bound: all anew")
	assert.Equal(t, []prompts.Change{{Stored: keys(prompt)[:1]}}, f.apply(2, []event{stores(0, prompt[:128], 11, 12)}))
	assert.Equal(t, []prompts.Change{{}}, f.apply(3, []event{{kind: removed, hashes: []uint64{12}, other: true}}), "from the CPU's memory")
	assert.Len(t, f.blocks, 2)
}
