package sim

import (
	"math"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver/order"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// server is one modelled rule processing server.
type server struct {
	fleet   *Fleet
	address string
	cores   int
	speed   float64 // how many times as fast as others
	fault   *Fault
	held    []*job // that came while it stood still
	up      bool
	epoch   int // counts its lives, so that events of an earlier one are void
	drain   bool
	stopsAt time.Duration // the end of its life that is known; 0 is none

	busy    int
	link    link
	queue   jobletQueue           // of those that are stalled
	lengths order.Lengths[uint64] // by project
	shared  map[key]*joblet       // queued or running
	cache   cache
	seq     uint64
	present []*job // received and not finished, in no order that matters

	counters
	fetches     int
	evicted     int
	touched     time.Duration // last change of busy
	coreSeconds float64
}

// counters count the jobs of one life of a server. Sums are in seconds.
type counters struct {
	begun             int     // jobs that started to execute
	completed, failed int     // jobs that ended, and those of them that failed
	waitSum           float64 // of the jobs that began
}

// boot starts the server with an empty cache.
func (s *server) boot(now time.Duration) {
	s.up, s.drain = true, false
	s.epoch++
	s.busy, s.link = 0, link{}
	s.queue, s.held = nil, nil
	s.lengths = order.Lengths[uint64]{}
	s.shared = make(map[key]*joblet)
	s.cache = newCache(int64(s.fleet.Cache))
	s.counters = counters{}
	s.touched = now
}

// receive takes a job in, and starts what can start.
func (s *server) receive(w *world, j *job) {
	s.seq++
	j.seq = s.seq
	j.received = w.now
	j.server = s
	j.phase, j.needed = feedSource, 0
	told := trace.Duration(j.assignment.Expected)
	if w.cfg.Sidecars.Untold {
		told = 0
	}
	j.expected = s.lengths.Expected(j.project, told)
	j.worked, j.ran, j.before = 0, 0, s.open(j.project)
	s.present = append(s.present, j)
	if s.suffers(hung, w.now) {
		s.held = append(s.held, j)
		return
	}
	s.advance(w, j)
	s.dispatch(w)
}

// open is how long the jobs of a project that are present are expected to run.
func (s *server) open(project uint64) (sum time.Duration) {
	for _, j := range s.present {
		if j.project == project {
			sum += j.expected
		}
	}
	return sum
}

// turn is the place that a job takes now among those of its priority.
func (s *server) turn(j *job) time.Duration {
	switch s.fleet.Order {
	case expected:
		return j.received + order.Behind(j.expected, j.worked, j.before, trace.Duration(j.Timeouts.Queue))
	case known:
		return j.received + order.Behind(s.left(*j), 0, 0, trace.Duration(j.Timeouts.Queue))
	}
	return j.received
}

// left is for how long a job will need a core from now on.
func (s *server) left(j job) (sum time.Duration) {
	for ; j.phase < finished; j.next() {
		if k, work, _ := j.joblet(); !s.cache.has(k) {
			sum += work
		}
	}
	return sum
}

// advance moves a job past everything that is cached, to its next joblet or its end.
func (s *server) advance(w *world, j *job) {
	for ; j.phase < finished; j.next() {
		k, work, bytes := j.joblet()
		if work <= 0 || s.cache.has(k) {
			continue
		}
		if j.phase == outputFeed {
			w.answered(j)
		}
		s.submit(w, j, k, work, bytes)
		return
	}
	if j.begun < 0 {
		j.begun = w.now // everything was cached
	}
	w.answered(j) // while it still counts as one of the server's
	s.leave(j)
	if !j.Prefetch && j.worked > 0 {
		s.lengths.Learn(j.project, j.worked)
	}
	s.completed++
	w.finish(j, pool.Answered, Done)
}

// submit joins an equal joblet that is queued or running, or queues a new one.
func (s *server) submit(w *world, j *job, k key, work time.Duration, bytes int64) {
	j.turn = s.turn(j)
	j.cold = j.cold || k.phase == feedSource
	b, ok := s.shared[k]
	if !ok {
		b = &joblet{key: k, server: s, epoch: s.epoch, priority: j.Priority, turn: j.turn, seq: j.seq, work: work, bytes: bytes}
		s.shared[k] = b
		if s.onCore(b) {
			s.queue.push(b)
		} else {
			s.begin(w, b)
		}
		j.fetches = j.fetches || k.phase == feedSource
	}
	b.jobs = append(b.jobs, j)
	j.on, j.joined = b, w.now
	switch {
	case b.running:
		s.begins(w, j)
	case j.turn < b.turn || j.Priority > b.priority: // it pulls the joblet it needs forward
		s.queue.remove(b)
		b.turn, b.priority = min(b.turn, j.turn), max(b.priority, j.Priority)
		s.queue.push(b)
	}
}

// dispatch starts stalled joblets while cores are free.
func (s *server) dispatch(w *world) {
	for s.busy < s.cores && len(s.queue) > 0 {
		b := s.queue[0]
		s.queue = s.queue[1:]
		s.begin(w, b)
		for _, j := range b.jobs {
			s.begins(w, j)
		}
	}
}

// abandon takes a job out before its end. A joblet that no other job needs goes with it, unless it runs already.
func (s *server) abandon(j *job) {
	is := func(other *job) bool { return other == j }
	if b := j.on; b != nil {
		b.jobs = slices.DeleteFunc(b.jobs, is)
		if !b.running && len(b.jobs) == 0 {
			s.queue.remove(b)
			delete(s.shared, b.key)
		}
		j.on = nil
	}
	s.held = slices.DeleteFunc(s.held, is)
	s.leave(j)
}

// holds reports whether a job is there.
func (s *server) holds(j *job) bool { return slices.Contains(s.present, j) }

func (s *server) leave(j *job) {
	at, last := slices.Index(s.present, j), len(s.present)-1
	s.present[at] = s.present[last]
	s.present = s.present[:last]
}

// begins notes that a job begins, unless it had begun before.
func (s *server) begins(w *world, j *job) {
	if j.begun >= 0 {
		return
	}
	j.begun = w.now
	s.begun++
	s.waitSum += (j.begun - j.received).Seconds()
}

func (s *server) account(now time.Duration) {
	s.coreSeconds += float64(s.busy) * (now - s.touched).Seconds()
	s.touched = now
}

// report is what the server says of itself now. before is what the poller remembers of its last poll.
func (s *server) report(w *world, before *seen) pool.Report {
	r := pool.Report{
		At:        w.time(w.now),
		Cores:     s.told(),
		CoresBusy: float64(s.busy),
		Completed: float64(s.completed),
		Failed:    float64(s.failed),
		Wait:      math.NaN(), ByPriority: true,
		Cached: &listing{cache: &s.cache, at: w.now},
	}
	if before.life != s.epoch {
		*before = seen{life: s.epoch}
	}
	r.Running, r.Stalled = s.load()
	if n := s.begun - before.begun; n > 0 {
		r.Wait = (s.waitSum - before.waitSum) / float64(n)
	}
	before.counters = s.counters
	return r
}

// load is the jobs that run and the joblets that are stalled.
func (s *server) load() (running, stalled [selection.Priorities]float64) {
	for _, j := range s.present {
		if j.on == nil || j.on.running {
			running[j.Priority]++
		}
	}
	for _, b := range s.queue {
		stalled[b.priority]++
	}
	return running, stalled
}
