package sim

import (
	"math"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ruleserver/order"
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

	busy    int
	link    link
	queue   jobletQueue
	lengths order.Lengths[uint64] // by project
	shared  map[key]*joblet       // queued or running
	cache   cache
	seq     uint64
	present []*job                    // received and not finished, in no order that matters
	jobs    [selection.Priorities]int // received and not finished
	waiting [selection.Priorities]int // of those, on a joblet that is stalled
	stalled [selection.Priorities]int // joblets

	counters
	fetches     int
	evicted     int           // beside those that the cache counts
	touched     time.Duration // last change of busy
	coreSeconds float64
}

// counters count the jobs of one life of a server. Sums are in seconds.
type counters struct {
	begun             int     // jobs that started to execute
	completed, failed int     // jobs that ended, and those of them that failed
	waitSum           float64 // of the jobs that began
}

func newServer(address string, fleet *Fleet) *server {
	s := &server{fleet: fleet, address: address, cores: fleet.Cores, speed: 1}
	s.boot(0)
	return s
}

// boot starts the server with an empty cache.
func (s *server) boot(now time.Duration) {
	s.up, s.drain = true, false
	s.epoch++
	s.busy, s.link = 0, link{}
	s.queue, s.held = nil, nil
	s.lengths = order.Lengths[uint64]{}
	s.evicted += s.cache.evicted
	s.shared = make(map[key]*joblet)
	s.cache = newCache(int64(s.fleet.Cache))
	s.counters = counters{}
	s.jobs, s.waiting, s.stalled = [2]int{}, [2]int{}, [2]int{}
	s.touched = now
}

// receive takes a job in, and starts what can start.
func (s *server) receive(w *world, j *job) {
	s.seq++
	j.seq = s.seq
	j.received = w.now
	j.server, j.epoch = s, s.epoch
	j.phase, j.needed = feedSource, 0
	j.expected, j.worked, j.before = s.expected(j), 0, s.open(j.project)
	s.jobs[j.priority]++
	j.slot = len(s.present)
	s.present = append(s.present, j)
	if s.suffers(hung, w.now) {
		s.held = append(s.held, j)
		return
	}
	s.advance(w, j)
	s.dispatch(w)
}

// expected is how long a job is expected to run.
func (s *server) expected(j *job) time.Duration {
	var told time.Duration
	if j.assignment != nil {
		told = duration(j.assignment.Expected)
	}
	return s.lengths.Expected(j.project, told)
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
	if s.fleet.Order != expected {
		return j.received
	}
	return j.received + order.Behind(j.expected, j.worked, j.before, j.queueBound)
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
	if !j.prefetch && j.worked > 0 {
		s.lengths.Learn(j.project, j.worked)
	}
	s.completed++
	w.finished(j)
}

// submit joins an equal joblet that is queued or running, or queues a new one.
func (s *server) submit(w *world, j *job, k key, work time.Duration, bytes int64) {
	j.turn = s.turn(j)
	if k.phase == feedSource {
		j.cold = true
	}
	b, ok := s.shared[k]
	if !ok {
		b = &joblet{key: k, server: s, epoch: s.epoch, priority: j.priority, turn: j.turn, seq: j.seq, work: work, bytes: bytes}
		s.shared[k] = b
		if s.onCore(b) {
			s.queue.push(b)
			s.stalled[b.priority]++
		} else {
			s.begin(w, b)
		}
		if k.phase == feedSource {
			j.fetches = true
		}
	}
	b.jobs = append(b.jobs, j)
	j.on = b
	if b.running {
		if j.begun < 0 {
			j.begun = w.now
			s.noteWait(j)
		}
		return
	}
	s.waiting[j.priority]++
	if j.turn < b.turn || j.priority > b.priority { // it pulls the joblet it needs forward
		s.queue.remove(b)
		s.stalled[b.priority]--
		b.turn, b.priority = min(b.turn, j.turn), max(b.priority, j.priority)
		s.stalled[b.priority]++
		s.queue.push(b)
	}
}

// dispatch starts stalled joblets while cores are free.
func (s *server) dispatch(w *world) {
	for s.busy < s.cores && len(s.queue) > 0 {
		b := s.queue[0]
		s.queue = s.queue[1:]
		s.stalled[b.priority]--
		s.begin(w, b)
		for _, j := range b.jobs {
			s.waiting[j.priority]--
			if j.begun < 0 {
				j.begun = w.now
				s.noteWait(j)
			}
		}
	}
}

// abandon takes a job out before its end. A joblet that no other job needs goes
// with it, unless it runs already.
func (s *server) abandon(j *job) {
	if b := j.on; b != nil {
		for i, other := range b.jobs {
			if other == j {
				b.jobs = append(b.jobs[:i], b.jobs[i+1:]...)
				break
			}
		}
		if !b.running {
			s.waiting[j.priority]--
			if len(b.jobs) == 0 {
				s.queue.remove(b)
				s.stalled[b.priority]--
				delete(s.shared, b.key)
			}
		}
		j.on = nil
	}
	s.held = slices.DeleteFunc(s.held, func(h *job) bool { return h == j })
	s.leave(j)
}

func (s *server) leave(j *job) {
	s.jobs[j.priority]--
	last := len(s.present) - 1
	s.present[j.slot] = s.present[last]
	s.present[j.slot].slot = j.slot
	s.present[last] = nil
	s.present = s.present[:last]
}

func (s *server) noteWait(j *job) {
	s.begun++
	s.waitSum += (j.begun - j.received).Seconds()
}

func (s *server) account(now time.Duration) {
	s.coreSeconds += float64(s.busy) * (now - s.touched).Seconds()
	s.touched = now
}

// report is what the server says of itself now. before is what the poller
// remembers of its last poll.
func (s *server) report(w *world, before *seen) pool.Report {
	r := pool.Report{
		At:        w.time(w.now),
		Cores:     s.cores,
		CoresBusy: float64(s.busy),
		Completed: float64(s.completed),
		Failed:    float64(s.failed),
		Wait:      math.NaN(),
	}
	r.Cached = &listing{cache: &s.cache, at: w.now}
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
	for p := range selection.Priorities {
		running[p] = float64(s.jobs[p] - s.waiting[p])
		stalled[p] = float64(s.stalled[p])
	}
	return running, stalled
}
