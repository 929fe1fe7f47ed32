package intake

// Key returns the 64-bit hash by which policies know a project. It is FNV-1a
// followed by the finalizer of MurmurHash3, which spreads the short, similar
// texts of consecutive integers over all bits. It depends on nothing but the
// text, so that all sidecars place a project alike. It is 0 only for "".
func Key(project string) uint64 { return keyOf(project) }

func keyOf[T string | []byte](project T) uint64 {
	if len(project) == 0 {
		return 0
	}
	h := uint64(0xcbf29ce484222325)
	for i := range len(project) {
		h ^= uint64(project[i])
		h *= 0x100000001b3
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	if h == 0 {
		return 1 // 0 is taken: it means no project
	}
	return h
}
