// Package hash holds the hash functions that decide where a project goes. All
// sidecars must agree on them, whatever their versions, so they never change.
package hash

import (
	"encoding/binary"
	"math/bits"
)

// Text is the FNV-1a hash of a text.
func Text[T string | []byte](text T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h ^= uint64(text[i])
		h *= 0x100000001b3
	}
	return h
}

// Mix spreads every bit of x over all bits of the result. It is the finaliser
// of MurmurHash3. No two numbers have the same result, and 0 stays 0.
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// Pair hashes two numbers together. Their order matters.
func Pair(a, b uint64) uint64 {
	// The factor is 2^64 divided by the golden ratio: it keeps small numbers
	// from cancelling each other out.
	return Mix(a ^ b*0x9e3779b97f4a7c15)
}

// Project is the key by which policies know a project. Text alone would not
// spread the short, similar texts of consecutive integers over all bits. It is 0
// only for "", which is no project.
func Project[T string | []byte](project T) uint64 {
	if len(project) == 0 {
		return 0
	}
	return max(1, Mix(Text(project)))
}

// Block is the hash of a block of text that follows a text with that hash. It reads 16 bytes at a
// time, as long texts need: for each a multiplication to 128 bits, folded (as in wyhash).
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
