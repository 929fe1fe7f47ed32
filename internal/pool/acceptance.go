package pool

import (
	"slices"
	"time"
)

// acceptance counts the upstreams that take new jobs, and caches the counts.
type acceptance struct {
	sets   uint64         // number of the current set
	mixed  bool           // some upstreams are for heavy jobs, and some are not
	counts [2]acceptCount // for ordinary and for heavy jobs
}

// acceptCount is the number of upstreams that take new jobs.
type acceptCount struct {
	n          int
	allLeaving bool      // all upstreams stop or drain: then all take jobs
	valid      bool      // the count is valid up to until
	until      time.Time // when the next upstream is about to stop; zero means never
}

// changed records a new set of upstreams.
func (t *acceptance) changed(set []*member) {
	heavy := func(m *member) bool { return m.Heavy }
	t.mixed = slices.ContainsFunc(set, heavy) && slices.ContainsFunc(set, func(m *member) bool { return !m.Heavy })
	t.forget()
}

func (t *acceptance) forget() { t.counts = [2]acceptCount{} }

// accepts reports whether an upstream takes heavy or ordinary jobs at all.
func (t *acceptance) accepts(m *member, heavy bool) bool { return heavy || !m.Heavy || !t.mixed }

func (t *acceptance) count(now time.Time, set []*member, heavy bool) acceptCount {
	c := &t.counts[0]
	if heavy {
		c = &t.counts[1]
	}
	if c.valid && (c.until.IsZero() || now.Before(c.until)) {
		return *c
	}
	*c = acceptCount{valid: true}
	serving := 0
	for _, m := range set {
		if !t.accepts(m, heavy) {
			continue
		}
		serving++
		if m.leavingReason(now) != Eligible {
			continue
		}
		c.n++
		if at := m.StopsAt.Add(-StopNotice); !m.StopsAt.IsZero() && (c.until.IsZero() || at.Before(c.until)) {
			c.until = at
		}
	}
	if c.allLeaving = c.n == 0; c.allLeaving {
		c.n = serving
	}
	return *c
}
