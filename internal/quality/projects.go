package quality

import (
	"cmp"
	"slices"
	"time"
)

const (
	// projectSpan is how long a project's job counts at least; it counts at most twice
	// as long.
	projectSpan = 5 * time.Minute
	// maxProjects bounds the projects of one span, about 500 kB. Those that come when it
	// is full are not counted.
	maxProjects = 5000
)

// Projects counts the jobs of the busiest projects. The zero value is ready. It is not
// safe for concurrent use.
type Projects struct {
	began             time.Time // of the current span
	current, previous map[uint64]*Busy
}

// Busy is a project and the jobs it had lately.
type Busy struct {
	Key  uint64
	Name string
	Jobs int
}

// Note counts a job. name is called for a project that is new.
func (p *Projects) Note(now time.Time, key uint64, name func() string) {
	if key == 0 {
		return
	}
	p.advance(now)
	one, known := p.current[key]
	if !known {
		if len(p.current) >= maxProjects {
			return
		}
		one = &Busy{Key: key, Name: name()}
		p.current[key] = one
	}
	one.Jobs++
}

// Top are the busiest projects of the last five to ten minutes, at most n.
func (p *Projects) Top(now time.Time, n int) []Busy {
	p.advance(now)
	all := make([]Busy, 0, len(p.current)+len(p.previous))
	for key, one := range p.current {
		all = append(all, *one)
		if before := p.previous[key]; before != nil {
			all[len(all)-1].Jobs += before.Jobs
		}
	}
	for key, one := range p.previous {
		if _, both := p.current[key]; !both {
			all = append(all, *one)
		}
	}
	slices.SortFunc(all, func(a, b Busy) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}

// advance begins a new span when the current one is over.
func (p *Projects) advance(now time.Time) {
	switch past := now.Sub(p.began); {
	case past < projectSpan && p.current != nil:
		return
	case past < 2*projectSpan:
		p.previous = p.current
	default:
		p.previous = nil
	}
	p.began, p.current = now, map[uint64]*Busy{}
}
