package quality

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// halfLife is after what time all counts of projects are halved.
	halfLife = 5 * time.Minute
	// maxProjects bounds the projects that are counted. Those that come when it is full are not.
	maxProjects = 10_000
)

// Projects counts the recent jobs of projects. Every five minutes all counts are halved. The
// zero value is ready. It is not safe for concurrent use.
type Projects struct {
	halved time.Time
	of     map[uint64]Busy
}

// Busy is a project and the jobs it had lately.
type Busy struct {
	Key  uint64
	Name string
	Jobs int
}

// Note counts a job of the project of that key and name. A job without a project, whose
// key is 0, is not counted.
func (p *Projects) Note(now time.Time, key uint64, name string) {
	p.halve(now)
	b, known := p.of[key]
	if key != 0 && (known || len(p.of) < maxProjects) {
		p.of[key] = Busy{Key: key, Name: name, Jobs: b.Jobs + 1}
	}
}

// halve halves all counts for each five minutes that have passed, and forgets what has none left.
func (p *Projects) halve(now time.Time) {
	if times := now.Sub(p.halved) / halfLife; len(p.of) > 0 && times > 0 {
		p.halved = p.halved.Add(times * halfLife)
		for key, b := range p.of {
			if b.Jobs >>= min(times, 62); b.Jobs == 0 {
				delete(p.of, key)
			} else {
				p.of[key] = b
			}
		}
	}
	if len(p.of) == 0 {
		p.of, p.halved = map[uint64]Busy{}, now
	}
}

// Recent is the projects that had jobs lately. No job can end meanwhile, so it leaves
// sorting to Top.
func (p *Projects) Recent(now time.Time) []Busy {
	p.halve(now)
	return slices.Collect(maps.Values(p.of))
}

// Top are the projects with most jobs, at most n. It sorts all.
func Top(all []Busy, n int) []Busy {
	slices.SortFunc(all, func(a, b Busy) int { return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name)) })
	return all[:min(n, len(all))]
}
