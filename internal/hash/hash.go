// Package hash holds the hash functions that map projects to upstreams. Sidecars of
// all versions must compute the same hashes, so the functions must never change.
package hash

import (
	"encoding/binary"
	"math/bits"
)

// Text returns the FNV-1a hash of a text.
func Text[T string | []byte](text T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= 0x100000001b3
	}
	return h
}

// Mix is the finaliser of MurmurHash3: every bit of x affects all bits of the
// result. It is a bijection, and Mix(0) is 0.
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// Pair returns a hash of two numbers. It depends on their order.
func Pair(a, b uint64) uint64 {
	// The factor, 2^64 divided by the golden ratio, prevents collisions of small
	// numbers, such as a ^ b == 0 for a == b.
	return Mix(a ^ b*0x9e3779b97f4a7c15)
}

// Project returns the hash that identifies a project in policies. It mixes Text again,
// because FNV-1a of short, similar texts such as consecutive integers does not affect
// all bits. It is 0 only for "", which means no project.
func Project[T string | []byte](project T) uint64 {
	if len(project) == 0 {
		return 0
	}
	return max(1, Mix(Text(project)))
}

// Block returns the hash of a text that is extended by a block; before is the hash of the text without
// the block. It is fast on long texts: like wyhash, it folds one 128-bit product per 16 bytes.
func Block(before uint64, block []byte) uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db
	h := before ^ uint64(len(block))*a
	for ; len(block) >= 16; block = block[16:] {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(block)^b, binary.LittleEndian.Uint64(block[8:])^h)
		h = hi ^ lo
	}
	var last [16]byte
	copy(last[:], block)
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(last[:])^b, binary.LittleEndian.Uint64(last[8:])^h)
	return max(1, Mix(hi^lo^a))
}
