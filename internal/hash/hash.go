// Package hash holds the hash functions that decide where a project goes. All
// sidecars must agree on them, whatever their versions, so they never change.
package hash

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
