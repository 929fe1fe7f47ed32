package prewarm

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
)

const (
	// span is for how long a job counts at least, and at most twice that.
	span = 5 * time.Minute
	// maxTallies bounds the projects, times upstreams, that are counted in one span: about 1 MB.
	maxTallies = 10_000
)

// place is a project at an upstream.
type place struct {
	upstream string
	project  uint64
}

// tally is how many jobs a project had at one upstream.
type tally struct {
	key  uint64
	id   intake.Text
	jobs int
}

// book counts jobs of late. It is a value without clock or lock: two spans,
// of which the older is forgotten when the younger is over.
type book struct {
	began      time.Time // of the younger
	young, old map[place]tally
}

func newBook() *book { return &book{young: map[place]tally{}} }

// note counts a job. A project that is new in a full span is not counted.
func (b *book) note(now time.Time, upstream string, key uint64, id intake.Text) {
	b.turn(now)
	at := place{upstream, key}
	t, known := b.young[at]
	if !known && len(b.young) >= maxTallies {
		return
	}
	t.key, t.id = key, id
	t.jobs++
	b.young[at] = t
}

func (b *book) turn(now time.Time) {
	switch past := now.Sub(b.began); {
	case past < span:
		return
	case past < 2*span:
		b.old = b.young
	default:
		b.old = nil
	}
	b.began, b.young = now, map[place]tally{}
}

// busiest lists an upstream's projects by their jobs of late, the most first.
func (b *book) busiest(now time.Time, upstream string) []tally {
	b.turn(now)
	var all []tally
	for at, t := range b.young {
		if at.upstream == upstream {
			t.jobs += b.old[at].jobs
			all = append(all, t)
		}
	}
	for at, t := range b.old {
		if _, counted := b.young[at]; !counted && at.upstream == upstream {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(x, y tally) int {
		return cmp.Or(cmp.Compare(y.jobs, x.jobs), cmp.Compare(x.key, y.key))
	})
	return all
}
