package quality

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
)

const (
	// projectSpan is how long a project's job counts at least; it counts at most twice
	// as long.
	projectSpan = 5 * time.Minute
	// maxProjects bounds the projects of one span: about 1.5 MB, or 5 MB with the longest
	// names and maxPlaces upstreams each. Those that come when it is full are not counted.
	maxProjects = 10_000
	// maxPlaces bounds the upstreams of a project that are counted in a span.
	maxPlaces = 8
	// atOnce is how many jobs are counted together.
	atOnce = 16
)

// Projects counts the recent jobs of projects, in all and at each upstream. There are two
// spans: when the current one is over, it becomes the previous one, and what that counted
// is forgotten. The zero value is ready. It is not safe for concurrent use.
//
// Jobs are counted some at a time. Most projects are seldom in the processor's cache: it
// fetches what several jobs need at once, and of one job piece after piece.
type Projects struct {
	began             time.Time // of the current span
	current, previous map[uint64]*project
	noted             []note // not counted yet
}

// note is a job that has ended.
type note struct {
	at       time.Time
	key      uint64
	name     intake.Text
	upstream string
}

// project is what one had in one span.
type project struct {
	name   string
	jobs   int
	places []place
}

// place is how many of the jobs one upstream answered.
type place struct {
	upstream string
	jobs     int
}

// Busy is a project and the jobs it had lately.
type Busy struct {
	Key  uint64
	Name string
	Jobs int
}

// Note counts a job of the project of that key and name, and the upstream that answered
// it; "" is none. A job without a project, whose key is 0, is not counted.
func (p *Projects) Note(now time.Time, key uint64, name intake.Text, upstream string) {
	if key == 0 {
		return
	}
	p.noted = append(p.noted, note{now, key, name, upstream})
	if len(p.noted) == atOnce {
		p.count()
	}
}

// count counts the jobs that were noted.
func (p *Projects) count() {
	for i := range p.noted {
		n := &p.noted[i]
		p.advance(n.at)
		one, known := p.current[n.key]
		if !known {
			if len(p.current) >= maxProjects {
				continue
			}
			one = &project{name: n.name.String()}
			p.current[n.key] = one
		}
		one.jobs++
		if n.upstream != "" {
			one.answered(n.upstream)
		}
	}
	p.noted = p.noted[:0]
}

func (p *project) answered(upstream string) {
	for i := range p.places {
		if p.places[i].upstream == upstream {
			p.places[i].jobs++
			return
		}
	}
	if len(p.places) < maxPlaces {
		p.places = append(p.places, place{upstream, 1})
	}
}

// at is how many of its jobs the upstream at an address answered, or how many it had in
// all for "". A nil project had none.
func (p *project) at(upstream string) int {
	switch {
	case p == nil:
		return 0
	case upstream == "":
		return p.jobs
	}
	for _, at := range p.places {
		if at.upstream == upstream {
			return at.jobs
		}
	}
	return 0
}

// Counts are the jobs of projects as they were at one instant. Jobs may end while they are used.
type Counts struct {
	upstream string
	current  []Busy              // a copy
	previous map[uint64]*project // it does not change anymore
}

// Counts returns the jobs of the last five to ten minutes: all for "", or else those that one
// upstream answered. It copies as little as it can, because no job can end meanwhile.
func (p *Projects) Counts(now time.Time, upstream string) Counts {
	p.count()
	p.advance(now)
	c := Counts{upstream: upstream, current: make([]Busy, 0, len(p.current)), previous: p.previous}
	for key, one := range p.current {
		c.current = append(c.current, Busy{Key: key, Name: one.name, Jobs: one.at(upstream)})
	}
	return c
}

// Top are the projects that had most jobs, at most n. It uses the counts up.
func (c Counts) Top(n int) []Busy {
	all, known := c.current, make(map[uint64]bool, len(c.current))
	for i := range all {
		one := &all[i]
		one.Jobs += c.previous[one.Key].at(c.upstream)
		known[one.Key] = true
	}
	for key, one := range c.previous {
		if !known[key] {
			all = append(all, Busy{Key: key, Name: one.name, Jobs: one.at(c.upstream)})
		}
	}
	all = slices.DeleteFunc(all, func(b Busy) bool { return b.Jobs == 0 })
	slices.SortFunc(all, compareBusy)
	return all[:min(n, len(all))]
}

// compareBusy puts the project with more jobs first.
func compareBusy(a, b Busy) int {
	return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name))
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
	p.began, p.current = now, map[uint64]*project{}
}
