package intake

import "example.org/pilotfish/internal/hash"

// Key returns the 64-bit hash by which policies know a project. It is FNV-1a
// followed by the finalizer of MurmurHash3, which spreads the short, similar
// texts of consecutive integers over all bits. It depends on nothing but the
// text, so that all sidecars place a project alike. It is 0 only for "".
func Key(project string) uint64 { return keyOf(project) }

func keyOf[T string | []byte](project T) uint64 {
	if len(project) == 0 {
		return 0
	}
	return max(1, hash.Mix(hash.Text(project))) // 0 means no project
}
