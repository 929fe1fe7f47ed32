package pool

import "fmt"

const (
	// maxListed is how many projects one upstream may say that it has cached. Beyond
	// manyListed, it may not say more than maxTimes as many as any other.
	maxListed, manyListed = 10_000_000, 10_000
	// enoughMissed is how many jobs must have missed what a listing named, the latest counting
	// most: five in a row.
	enoughMissed = 4
	// foundFade is what is left of the earlier ones after each: about 20 count.
	foundFade = 0.95
	// wrongBy is by how much the share of jobs that did not find their data must exceed that
	// of the others before a listing is doubted, and rightBy when that ends.
	wrongBy, rightBy = 0.5, 0.25
)

// listing is how often an upstream's cache listing was right, as its answers tell.
type listing struct {
	found, missed float64 // jobs that came because the listing named their project, fading
	doubted       bool    // it is not believed
	tooLong       string  // why the last one was refused for its length; "" is not
}

// share is how many of the jobs did not find their data; the fewer they are, the nearer
// it is to a half.
func share(missed, all float64) float64 { return (missed + 1) / (all + 2) }

// observe takes in an answer to a job whose project the listing named. others counts the
// jobs of the other upstreams. After an import nobody has what was listed.
func (l *listing) observe(found bool, others func() (missed, all float64)) {
	l.found, l.missed = l.found*foundFade, l.missed*foundFade
	if found {
		l.found++
	} else {
		l.missed++
	}
	if l.missed < enoughMissed && !l.doubted {
		return // whatever the others say
	}
	more := share(l.missed, l.found+l.missed) - share(others())
	switch {
	case more > wrongBy && l.missed >= enoughMissed:
		l.doubted = true
	case more < rightBy:
		l.doubted = false
	}
}

// found notes whether the data of a job was cached that a listing had named.
func (p *Pool) found(m *member, cached bool) {
	m.listing.observe(cached, func() (missed, all float64) {
		for _, other := range p.set {
			if other != m {
				missed += other.listing.missed
				all += other.listing.missed + other.listing.found
			}
		}
		return missed, all
	})
}

// tooLong says why a listing cannot be true; "" if it can.
func (p *Pool) tooLong(m *member, cached CacheSet) string {
	n := cached.Len()
	if n > maxListed {
		return fmt.Sprintf("%d cached projects", n)
	}
	if n <= manyListed {
		return ""
	}
	most := 0
	for _, other := range p.set {
		if other != m && other.cached != nil {
			most = max(most, other.cached.Len())
		}
	}
	if most == 0 || n/maxTimes <= most {
		return ""
	}
	return fmt.Sprintf("%d cached projects, more than %d times as many as others", n, maxTimes)
}
