package report

// Projects is an immutable set of projects, known by their hashes (job.Key).
// A nil *Projects is an empty set.
//
// It is a table with open addressing and linear probing, at most half full. The
// hashes are uniform already, so their low bits are the place to look.
type Projects struct {
	slots []uint64 // a power of two of them; 0 is free
	n     int
}

const fewestSlots = 8

// newProjects returns an empty set with room for size projects. It may still be
// added to; that ends when it is handed over.
func newProjects(size int) *Projects {
	slots := fewestSlots
	for slots < 2*size {
		slots *= 2
	}
	return &Projects{slots: make([]uint64, slots)}
}

// Contains reports whether the project with this hash is in the set. The
// hash 0, which is no project, never is.
func (p *Projects) Contains(project uint64) bool {
	return project != 0 && p.Len() > 0 && p.slots[p.find(project)] == project
}

// Len returns how many projects are in the set.
func (p *Projects) Len() int {
	if p == nil {
		return 0
	}
	return p.n
}

// find returns the slot that holds the project, or else the one where it belongs.
func (p *Projects) find(project uint64) uint64 {
	mask := uint64(len(p.slots) - 1)
	at := project & mask
	for p.slots[at] != project && p.slots[at] != 0 {
		at = (at + 1) & mask
	}
	return at
}

// add puts a project into the set; 0 and those already there are no change.
func (p *Projects) add(project uint64) {
	if project == 0 {
		return
	}
	at := p.find(project)
	if p.slots[at] == project {
		return
	}
	p.slots[at] = project
	p.n++
	if 2*p.n > len(p.slots) {
		p.grow()
	}
}

func (p *Projects) grow() {
	bigger := newProjects(2 * p.n)
	for _, project := range p.slots {
		if project != 0 {
			bigger.slots[bigger.find(project)] = project
		}
	}
	p.slots = bigger.slots
}
