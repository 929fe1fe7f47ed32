package events

import (
	"errors"

	"github.com/tinylib/msgp/msgp"

	"example.org/pilotfish/internal/hash"
)

// event is a change of a server's cache.
type event struct {
	kind   string
	hashes []uint64 // hashes of the blocks
	tokens []uint32 // tokens of all stored blocks
	size   int      // size of a block, in tokens
	parent uint64   // the block before the stored ones; 0 if a prompt starts with them
	other  bool     // jobs do not find the blocks by their tokens: they are of a LoRA adapter or an image, or not in GPU memory
}

// maxEvents bounds the events of a batch, which take a byte each in a message and a hundred in memory.
const maxEvents = 1 << 17

// Kinds of events.
const (
	stored  = "BlockStored"
	removed = "BlockRemoved"
	cleared = "AllBlocksCleared"
)

// Members in the order of versions of vLLM that encode events as arrays, after the kind. Other versions encode them as maps.
var (
	ofBatch = []string{"ts", "events"}
	ofEvent = map[string][]string{
		stored:  {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx"},
		removed: {"block_hashes", "medium", "group_idx"},
	}
)

var errEvents = errors.New("not a batch of events of a KV cache")

// unpacker reads MessagePack. After an error it returns zero values.
type unpacker struct {
	rest []byte
	err  error
}

// batch reads a KVEventBatch. It skips events of other kinds and unknown members.
func batch(message []byte) (all []event, err error) {
	u := &unpacker{rest: message}
	u.members(ofBatch, func(name string) {
		if name != "events" {
			u.skip()
			return
		}
		n := u.length(msgp.ReadArrayHeaderBytes)
		if len(all)+n > maxEvents {
			u.rest, u.err = nil, errEvents
		}
		for ; n > 0 && u.err == nil; n-- {
			e := event{}
			u.members(nil, func(name string) { u.member(&e, name) })
			all = append(all, e)
		}
	})
	if u.err != nil {
		return nil, u.err
	}
	return all, nil
}

func (u *unpacker) member(e *event, name string) {
	some := msgp.NextType(u.rest) != msgp.NilType
	switch {
	case name == "type":
		e.kind = next(u, msgp.ReadStringBytes)
	case !some:
		u.skip()
	case name == "block_hashes":
		for range u.length(msgp.ReadArrayHeaderBytes) {
			e.hashes = append(e.hashes, u.hash())
		}
	case name == "parent_block_hash":
		e.parent = u.hash()
	case name == "token_ids":
		for range u.length(msgp.ReadArrayHeaderBytes) {
			e.tokens = append(e.tokens, next(u, msgp.ReadUint32Bytes))
		}
	case name == "block_size":
		e.size = next(u, msgp.ReadIntBytes)
	case name == "medium":
		e.other = next(u, msgp.ReadStringBytes) != "GPU" || e.other
	case name == "group_idx": // of layers with a window of their own
		e.other = next(u, msgp.ReadIntBytes) > 0 || e.other
	case name == "extra_keys":
		for range u.length(msgp.ReadArrayHeaderBytes) {
			e.other = msgp.NextType(u.rest) != msgp.NilType || e.other
			u.skip()
		}
	default:
		e.other = e.other || name == "lora_id" || name == "lora_name"
		u.skip()
	}
}

// members calls use for each member of an array or a map; use must read the value. Without names, the first element of an array
// is the kind, which selects the names of the others.
func (u *unpacker) members(names []string, use func(name string)) {
	if msgp.NextType(u.rest) == msgp.MapType {
		for range u.length(msgp.ReadMapHeaderBytes) {
			use(next(u, msgp.ReadStringBytes))
		}
		return
	}
	n := u.length(msgp.ReadArrayHeaderBytes)
	if names == nil {
		kind, _, _ := msgp.ReadStringBytes(u.rest)
		names = append([]string{"type"}, ofEvent[kind]...)
	}
	for i := range n {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		use(name)
	}
}

// length reads the header of an array or a map. Each element takes a byte or more.
func (u *unpacker) length(header func([]byte) (uint32, []byte, error)) int {
	n := next(u, header)
	if int(n) > len(u.rest) {
		u.rest, u.err, n = nil, errEvents, 0
	}
	return int(n)
}

// hash reads the hash of a block: a number, or bytes.
func (u *unpacker) hash() uint64 {
	switch msgp.NextType(u.rest) {
	case msgp.BinType:
		return hash.Text(next(u, msgp.ReadBytesZC))
	case msgp.IntType:
		return uint64(next(u, msgp.ReadInt64Bytes))
	}
	return next(u, msgp.ReadUint64Bytes)
}

func (u *unpacker) skip() {
	if u.err == nil {
		u.rest, u.err = msgp.Skip(u.rest)
	}
}

// next reads a value.
func next[T any](u *unpacker, read func([]byte) (T, []byte, error)) (v T) {
	if u.err == nil {
		v, u.rest, u.err = read(u.rest)
	}
	return v
}
