package report

// projectSet is an immutable set of projects, known by their hashes (intake.Key), with
// the bytes of each one's data; 0 is not told. The hash 0 is no project and never in it.
// It takes about 24 bytes a project: 47 MB for 100,000 projects at each of 20 upstreams.
type projectSet map[uint64]float32

// Contains reports whether the project with this hash is in the set.
func (p projectSet) Contains(project uint64) bool {
	_, ok := p[project]
	return ok
}

// Bytes is the size of the project's data, or 0 where the listing does not tell.
func (p projectSet) Bytes(project uint64) float64 { return float64(p[project]) }

// Len returns how many projects are in the set.
func (p projectSet) Len() int { return len(p) }
