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
	speed   float64 // relative speed of the cores
	fault   *Fault
	held    []*job // jobs that arrived while the server was hung
	up      bool
	epoch   int // number of starts and stops; events of an earlier epoch are ignored
	drain   bool
	stopsAt time.Duration // announced time of the next stop; 0 means none

	busy    int // busy cores
	link    link
	queue   jobletQueue           // stalled joblets
	lengths order.Lengths[uint64] // by project
	shared  map[key]*joblet       // queued and running joblets
	cache   cache
	seq     uint64
	present []*job // jobs received and not finished; the order is irrelevant

	counters
	fetches     int
	evicted     int
	touched     time.Duration // last change of busy
	coreSeconds float64
}

// counters count the jobs of a server since it started.
type counters struct {
	begun             int     // jobs that started to execute
	completed, failed int     // jobs that ended, and how many of them failed
	waitSum           float64 // total queue time of the jobs that started, in seconds
}

// boot starts the server with an empty cache.
func (s *server) boot(now time.Duration) {
	s.up, s.drain = true, false
	s.epoch++
	s.busy, s.link = 0, link{}
	s.queue, s.held = nil, nil
	s.lengths = order.Lengths[uint64]{}
	s.shared = make(map[key]*joblet)
	s.cache = newCache(s.fleet)
	s.counters = counters{}
	s.touched = now
}

// receive adds a job and starts the joblets that can start.
func (s *server) receive(w *world, j *job) {
	s.seq++
	j.seq = s.seq
	j.received = w.now
	j.server = s
	j.phase, j.needed = feedSource, 0
	if j.sentLength = trace.Duration(j.assignment.Expected); w.cfg.Sidecars.Untold {
		j.sentLength = 0
	}
	j.expected = s.lengths.Expected(j.project, j.sentLength)
	j.worked, j.ran, j.before = 0, 0, s.open(j.project)
	s.present = append(s.present, j)
	if s.suffers(hung, w.now) {
		s.held = append(s.held, j)
		return
	}
	s.advance(w, j)
	s.dispatch(w)
}

// open returns the total expected duration of the present jobs of a project.
func (s *server) open(project uint64) (sum time.Duration) {
	for _, j := range s.present {
		if j.project == project {
			sum += j.expected
		}
	}
	return sum
}

// turn returns a job's current sort key among the jobs of its priority.
func (s *server) turn(j *job) time.Duration {
	switch s.fleet.Order {
	case expected:
		return j.received + order.Delay(j.expected, j.worked, j.before, trace.Duration(j.Timeouts.Queue))
	case known:
		return j.received + order.Delay(s.left(*j), 0, 0, trace.Duration(j.Timeouts.Queue))
	}
	return j.received
}

// left returns the core time that a job still needs.
func (s *server) left(j job) (sum time.Duration) {
	for ; j.phase < finished; j.next() {
		if k, work, _ := j.joblet(); !s.cache.has(k) {
			sum += work
		}
	}
	return sum
}

// advance skips the joblets whose results are cached, and submits the job's next joblet or ends the job.
func (s *server) advance(w *world, j *job) {
	for ; j.phase < finished; j.next() {
		k, work, bytes := j.joblet()
		if work <= 0 || s.cache.use(k, w.now) {
			continue
		}
		if j.phase == outputFeed {
			w.answered(j)
		}
		s.submit(w, j, k, work, bytes)
		return
	}
	if j.begun < 0 {
		j.begun = w.now // all results were cached
	}
	w.answered(j) // before leave: the load hint includes this job
	s.leave(j)
	if !j.Prefetch && j.worked > 0 {
		s.lengths.Learn(j.project, j.worked, j.sentLength)
	}
	s.completed++
	s.cache.use(key{project: j.project, version: j.Version, phase: feedSource}, w.now) // a container is reserved from the end of a job
	w.finish(j, pool.Answered, Done)
}

// submit adds the job to an equal joblet that is queued or running, or queues a new joblet.
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
	case j.turn < b.turn || j.Priority > b.priority: // move the joblet forward in the queue
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

// abandon removes a job before its end, and its queued joblet if no other job needs it. A running joblet is not stopped.
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

// holds reports whether a job is present.
func (s *server) holds(j *job) bool { return slices.Contains(s.present, j) }

func (s *server) leave(j *job) {
	at, last := slices.Index(s.present, j), len(s.present)-1
	s.present[at] = s.present[last]
	s.present = s.present[:last]
}

// begins records the start of a job's execution, once.
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

// report returns the server's report. before holds the counters of the poller's last poll, and is updated.
func (s *server) report(w *world, before *seen) pool.Report {
	s.cache.expire(w.now)
	r := pool.Report{
		At:        w.time(w.now),
		Cores:     s.reportedCores(),
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

// load returns the numbers of running jobs and of stalled joblets.
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
