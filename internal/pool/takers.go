package pool

import (
	"slices"
	"time"
)

// takers counts the upstreams that take new jobs. It keeps the counts until they change.
type takers struct {
	sets   uint64   // number of the current set
	mixed  bool     // some upstreams are for heavy jobs, and some are not
	counts [2]count // for ordinary and for heavy jobs
}

// count is the number of upstreams that take new jobs.
type count struct {
	n     int
	all   bool      // all upstreams stop or drain: then all take jobs
	known bool      // the count is valid until then
	until time.Time // when the next upstream is about to stop; zero is never
}

// changed records a new set of upstreams.
func (t *takers) changed(set []*member) {
	heavy := func(m *member) bool { return m.Heavy }
	t.mixed = slices.ContainsFunc(set, heavy) && slices.ContainsFunc(set, func(m *member) bool { return !m.Heavy })
	t.forget()
}

func (t *takers) forget() { t.counts = [2]count{} }

// serves reports whether an upstream takes heavy or ordinary jobs at all.
func (t *takers) serves(m *member, heavy bool) bool { return heavy || !m.Heavy || !t.mixed }

func (t *takers) count(now time.Time, set []*member, heavy bool) count {
	c := &t.counts[0]
	if heavy {
		c = &t.counts[1]
	}
	if c.known && (c.until.IsZero() || now.Before(c.until)) {
		return *c
	}
	*c = count{known: true}
	serving := 0
	for _, m := range set {
		if !t.serves(m, heavy) {
			continue
		}
		serving++
		if m.leaving(now) != Eligible {
			continue
		}
		c.n++
		if at := m.StopsAt.Add(-StopNotice); !m.StopsAt.IsZero() && (c.until.IsZero() || at.Before(c.until)) {
			c.until = at
		}
	}
	if c.all = c.n == 0; c.all {
		c.n = serving
	}
	return *c
}
