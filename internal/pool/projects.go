package pool

// projectState is what is known of one project. A job finds it once, since the memory of
// so many projects is seldom in the processor's cache.
type projectState struct {
	id   uint64 // 0 is that of jobs without a project
	open int    // assignments
	at   int    // in projectStates.open, while there are any

	fetches, answers logMean // how long they take for this project
	listed, told     float64 // bytes of its data, by cache listings and by jobs; 0 is not known

	listers listers
	near    *[near]uint16 // places in the set of the upstreams that are near; nil is not known
	nearOf  uint64        // the number of that set
}

// size is the size of the project's data; 0 is not known. The size that a job told counts
// before that of a listing.
func (s *projectState) size() float64 {
	if s.told > 0 {
		return s.told
	}
	return s.listed
}

// projectStates holds the states of the projects that had jobs lately: at most limit of
// them, and beyond that those with open jobs. When the young half is full, the old half is
// dropped and they change places.
type projectStates struct {
	limit      int
	young, old map[uint64]*projectState
	open       []*projectState // those with open jobs, in no order
}

func newProjectStates(limit int) projectStates {
	return projectStates{limit: limit, young: make(map[uint64]*projectState)}
}

// find returns the state of a project. It changes nothing: where nothing is known, what
// it returns is kept nowhere.
func (p *projectStates) find(id uint64) *projectState {
	if s, ok := p.young[id]; ok {
		return s
	}
	if s, ok := p.old[id]; ok {
		return s
	}
	return &projectState{id: id}
}

// of returns the state of a project, and keeps it as one that was seen lately.
func (p *projectStates) of(id uint64) *projectState {
	if s, ok := p.young[id]; ok {
		return s
	}
	s := p.find(id)
	delete(p.old, id)
	if len(p.young) >= p.limit/2 {
		p.old, p.young = p.young, make(map[uint64]*projectState)
		for _, s := range p.open {
			if _, kept := p.old[s.id]; !kept {
				p.young[s.id] = s
			}
		}
	}
	p.young[id] = s
	return s
}

// begin counts a job that opens, and end takes that back.
func (p *projectStates) begin(s *projectState) {
	if s.open++; s.open == 1 {
		s.at = len(p.open)
		p.open = append(p.open, s)
	}
}

func (p *projectStates) end(s *projectState) {
	if s.open--; s.open > 0 {
		return
	}
	last := len(p.open) - 1
	p.open[s.at] = p.open[last]
	p.open[s.at].at = s.at
	p.open[last] = nil
	p.open = p.open[:last]
}

// listers tells which upstreams name a project in their cache listings, by their places in
// the set, or among those that are near. A listing is a large table, and to look into those
// of all upstreams would be much of the work of a claim. So what each says is kept until the
// upstream sends another. A claim that looks at all of a large set asks each anew.
type listers struct {
	many  bool   // the upstreams have no bits
	asked uint64 // Pool.listings when they were asked
	named uint64 // a bit for each that names the project
	sized uint64 // and for each that tells the size of its data
	size  float64
	from  int // the place of the one that told size; negative is none
}

// ask asks the upstreams of set that have sent another listing since they were asked.
func (l *listers) ask(project uint64, set []*member, listings uint64) {
	if l.many = len(set) >= nearFrom; l.many || l.asked == listings || project == 0 {
		return
	}
	for i, m := range set {
		if m.changed <= l.asked {
			continue
		}
		bit := uint64(1) << i
		l.named, l.sized = l.named&^bit, l.sized&^bit
		if m.names(project) {
			l.named |= bit
			if saneBytes(m.cached.Bytes(project)) {
				l.sized |= bit
			}
		}
	}
	l.asked, l.from = listings, -1
}

// names reports whether upstream i of the set, which is m, names the project.
func (l *listers) names(project uint64, i int, m *member) bool {
	if l.many {
		return project != 0 && m.names(project)
	}
	return l.named>>i&1 == 1
}

// tellsSize reports whether it tells the size of the project's data, too.
func (l *listers) tellsSize(project uint64, i int, m *member) bool {
	if l.many {
		return saneBytes(m.cached.Bytes(project))
	}
	return l.sized>>i&1 == 1
}

// sizeBy returns the size that it tells.
func (l *listers) sizeBy(project uint64, i int, m *member) float64 {
	if l.many {
		return m.cached.Bytes(project)
	}
	if l.from != i {
		l.size, l.from = m.cached.Bytes(project), i
	}
	return l.size
}

// all yields the states, those that were seen lately first.
func (p *projectStates) all(yield func(*projectState) bool) {
	for _, half := range []map[uint64]*projectState{p.young, p.old} {
		for _, s := range half {
			if !yield(s) {
				return
			}
		}
	}
}
