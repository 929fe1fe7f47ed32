package sim

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// phase is a job's current step in its chain of joblets (the thesis, 3.4).
type phase uint8

const (
	feedSource phase = iota
	sharedOperators
	operators
	outputFeed
	finished
)

// key identifies a joblet's result. Joblets with equal keys are computed once.
type key struct {
	project uint64
	version int64
	shared  string
	number  int64 // of the job, if its result is not shared; otherwise 0
	phase   phase
}

// joblet is one piece of work on one core for one or more jobs. A fetch can use links instead of a core.
type joblet struct {
	key      key
	server   *server
	epoch    int // the server's epoch at its creation
	priority selection.Priority
	turn     time.Duration // the earliest turn of its jobs
	seq      uint64        // submission order of its first job
	work     time.Duration
	bytes    int64
	jobs     []*job
	since    time.Duration // start, if running
	running  bool
}

// joblet returns the work of the job's current phase. Jobs of a project share the project's data and its shared rules
// (the thesis, figure 2); the rules of one channel and the response belong to one job.
func (j *job) joblet() (k key, work time.Duration, bytes int64) {
	k = key{project: j.project, version: j.Version, phase: j.phase}
	switch j.phase {
	case feedSource:
		if j.needed > 0 {
			n := &j.Needs[j.needed-1]
			return key{project: intake.Key(string(n.Name)), phase: feedSource}, trace.Duration(n.Load), n.Bytes
		}
		return k, trace.Duration(j.Load), j.Bytes
	case sharedOperators:
		k.shared = j.Shared
		return k, trace.Duration(j.SharedRules), j.Bytes / 2
	case operators:
		k.number = j.number
		return k, trace.Duration(j.Operators), 0
	}
	k.number = j.number
	return k, trace.Duration(j.Output), 0
}

// next moves to the job's next joblet.
func (j *job) next() {
	if j.phase == feedSource && j.needed < len(j.Needs) {
		j.needed++
		return
	}
	j.phase++
}

// onCore reports whether a joblet occupies a core while it runs.
func (s *server) onCore(b *joblet) bool {
	return b.key.phase != feedSource || s.fleet.Links == (Links{})
}

// link transfers the data of one fetch at a time. A transfer is always completed, even if its server
// has stopped.
type link struct{ free time.Duration }

// pass returns the end of a transfer that is queued now.
func (l *link) pass(now time.Duration, bytes int64, perSecond settings.Size) time.Duration {
	if perSecond > 0 {
		l.free = max(l.free, now) + trace.Duration(float64(bytes)/float64(perSecond))
	}
	return l.free
}

// begin starts a joblet; if it needs a core, one must be free. A fetch over links ends with the slowest
// link, but not before the fetch's own duration has passed.
func (s *server) begin(w *world, b *joblet) {
	b.running = true
	b.since = w.now
	ends := s.ends(w.now, b)
	if b.key.phase == feedSource {
		s.fetches++
	}
	if s.onCore(b) {
		s.account(w.now)
		s.busy++
	} else {
		links := s.fleet.Links
		ends = max(ends, s.link.pass(w.now, b.bytes, links.Upstream), w.link.pass(w.now, b.bytes, links.Shared))
	}
	w.events.Add(ends, rankFinish, func() { b.end(w) })
}

// end ends a joblet: it caches the result and advances the joblet's jobs.
func (b *joblet) end(w *world) {
	s := b.server
	if b.epoch != s.epoch {
		return // the server has stopped since
	}
	s.account(w.now)
	if s.onCore(b) {
		s.busy--
	}
	delete(s.shared, b.key)
	if b.key.phase <= sharedOperators {
		s.evicted += s.cache.put(b.key, b.bytes, w.now)
	}
	for _, j := range b.jobs {
		j.on = nil
		j.worked += w.now - b.since
		j.ran += w.now - max(b.since, j.joined)
		j.next()
		s.advance(w, j)
	}
	s.dispatch(w)
}

// jobletQueue is sorted by priority, then turn, then submission order.
type jobletQueue []*joblet

// place returns the index of a joblet, or the index at which to insert it.
func (q jobletQueue) place(b *joblet) int {
	at, _ := slices.BinarySearchFunc(q, b, func(a, b *joblet) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.turn, b.turn), cmp.Compare(a.seq, b.seq))
	})
	return at
}

func (q *jobletQueue) push(b *joblet) { *q = slices.Insert(*q, q.place(b), b) }

func (q *jobletQueue) remove(b *joblet) {
	at := q.place(b)
	*q = slices.Delete(*q, at, at+1)
}
