package events

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
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
	digested := number(t, []byte("abc"))
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
			{kind: removed, hashes: []uint64{digested}, other: true},
			{kind: cleared},
			{kind: "BlockMoved"},
		}, all, "maps: %v", maps)
	}
}

// number returns the number of a block whose hash is bytes.
func number(t *testing.T, b []byte) uint64 {
	t.Helper()
	message, err := msgp.AppendIntf(nil, b)
	require.NoError(t, err)
	u := &unpacker{rest: message}
	return u.hash()
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
		c := &cache{blocks: map[uint64]chain{}, counted: func(bool) {}, before: func([]uint32) (chain, bool) { return chain{}, false }}
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
		c.apply(1, all)
	})
}
