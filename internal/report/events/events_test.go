package events

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/prompts"
)

// encode encodes a batch like vLLM: as arrays, or as maps.
func encode(t testing.TB, maps bool, events ...map[string]any) []byte {
	t.Helper()
	var list []any
	for _, e := range events {
		if maps {
			list = append(list, e)
			continue
		}
		values := []any{e["type"]}
		for _, name := range ofEvent[e["type"].(string)] {
			values = append(values, e[name])
		}
		list = append(list, values)
	}
	batch := any([]any{1.5, list, 0})
	if maps {
		batch = map[string]any{"ts": 1.5, "events": list}
	}
	message, err := msgp.AppendIntf(nil, batch)
	require.NoError(t, err)
	return message
}

// store returns a BlockStored event of blocks of four tokens each.
func store(parent any, hashes []any, tokens ...uint32) map[string]any {
	list := make([]any, len(tokens))
	for i, token := range tokens {
		list[i] = token
	}
	return map[string]any{
		"type": stored, "block_hashes": hashes, "parent_block_hash": parent, "token_ids": list, "block_size": 4, "medium": "GPU",
	}
}

func TestBothEncodings(t *testing.T) {
	for _, maps := range []bool{false, true} {
		all, err := batch(encode(t, maps,
			store(nil, []any{int64(-7), uint64(1 << 63)}, 1, 2, 3, 4, 5, 6, 7, 8),
			map[string]any{"type": removed, "block_hashes": []any{[]byte("abc")}, "medium": "CPU"},
			map[string]any{"type": cleared},
			map[string]any{"type": "BlockMoved", "to": 7},
		))
		require.NoError(t, err)
		minus7 := int64(-7)
		assert.Equal(t, []event{
			{kind: stored, hashes: []uint64{uint64(minus7), 1 << 63}, tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8}, size: 4},
			{kind: removed, hashes: []uint64{hash.Text([]byte("abc"))}, other: true},
			{kind: cleared},
			{kind: "BlockMoved"},
		}, all, "maps: %v", maps)
	}
}

// Blocks that jobs cannot find by their tokens are marked.
func TestOtherBlocks(t *testing.T) {
	for name, value := range map[string]any{
		"medium": "CPU", "lora_id": 3, "lora_name": "french", "group_idx": 1, "extra_keys": []any{nil, []any{"an image"}},
	} {
		for _, maps := range []bool{false, true} {
			e := store(nil, []any{1}, 1, 2, 3, 4)
			e[name] = value
			all, err := batch(encode(t, maps, e))
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.True(t, all[0].other, "%s, maps: %v", name, maps)
		}
	}
	e := store(nil, []any{1}, 1, 2, 3, 4)
	e["extra_keys"], e["group_idx"], e["medium"] = []any{nil}, 0, nil
	all, err := batch(encode(t, false, e))
	require.NoError(t, err)
	assert.False(t, all[0].other)
}

// A message of small or invalid events does not become many times as large.
func TestEventsAreBounded(t *testing.T) {
	for _, event := range []byte{0x90, 0xc0} { // an empty array, or nil, which is no event
		message := binary.BigEndian.AppendUint32([]byte{0x92, 0, 0xdd}, 2*maxEvents)
		message = append(message, bytes.Repeat([]byte{event}, 2*maxEvents)...)
		all, err := batch(message)
		require.ErrorIs(t, err, errEvents)
		assert.Empty(t, all)
	}
	all, err := batch([]byte{0x92, 0, 0x93, 0xc0, 0x90, 0x90})
	require.Error(t, err)
	assert.Empty(t, all)
}

func FuzzBatch(f *testing.F) {
	for _, maps := range []bool{false, true} {
		f.Add(encode(f, maps, store(int64(9), []any{7}, 1, 2, 3, 4), map[string]any{"type": removed, "block_hashes": []any{[]byte("abc")}}))
	}
	f.Add([]byte("\x93\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xdd\xff\xff\xff\xff\xc0"))
	f.Fuzz(func(t *testing.T, message []byte) {
		all, err := batch(message)
		if err != nil {
			return
		}
		size := 0
		for _, e := range all {
			size += 8*len(e.hashes) + 4*len(e.tokens)
		}
		if size > 8*len(message) {
			t.Fatalf("%d bytes of events from %d", size, len(message))
		}
		newFixture().apply(1, all)
	})
}

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
	f := &fixture{cache: cache{blocks: map[uint64]chain{}, before: func([]uint32) (chain, bool) { return chain{}, false }}}
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
