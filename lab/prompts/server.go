package prompts

import (
	"slices"
	"time"

	"example.org/pilotfish/lab/trace"
)

const (
	// step is the time to generate a token of one response, and perAnswer the additional time for each other response
	// that is generated at the same time.
	step, perAnswer = 20 * time.Millisecond, 500 * time.Microsecond
	// startup is the minimum time to read a prompt.
	startup = 20 * time.Millisecond
)

// server models vLLM with chunked prefill and prefix caching: it reads prompts first come, first served, one at a time, and
// generates all responses concurrently.
type server struct {
	rate    float64 // tokens per second
	kept    *cache
	waiting []*job        // the first is being read
	until   time.Duration // when the first is read
	writing int
	changed []func(change) // take each change of the cache

	counts
}

// counts are the counters of a server's metrics.
type counts struct {
	begun, answered, done int // prompts that were started, that got their first token, and that ended
	waited                time.Duration
	taken                 int64 // tokens of the prompts that were started, without the cached ones
}

// change is the change of a cache by one prompt.
type change struct{ prompt, stored, removed []int64 }

// keep puts a prompt's blocks into the cache.
func (s *server) keep(j *job) {
	c := change{prompt: j.full()}
	c.stored, c.removed = s.kept.put(c.prompt)
	for _, f := range s.changed {
		f(c)
	}
}

func (s *server) receive(w *world, j *job) {
	s.waiting = append(s.waiting, j)
	if len(s.waiting) == 1 {
		s.read(w)
	}
}

// read starts the prompt that arrived first. Only full blocks are cached, and the last token is always read.
func (s *server) read(w *world) {
	j := s.waiting[0]
	left := s.missing(j)
	j.found = int((j.Read - left) / trace.BlockTokens)
	s.begun++
	s.taken += left
	s.waited += w.now - j.arrived
	s.until = w.now + startup + trace.Duration(float64(left)/s.rate)
	w.events.Add(s.until, 0, func() {
		s.keep(j)
		s.waiting = s.waiting[1:]
		s.writing++
		s.answered++
		w.results = append(w.results, result{j.Offset, (w.now - j.arrived).Seconds(), j.found, len(j.Blocks)})
		j.router.answered(w, j)
		w.events.Add(w.now+time.Duration(j.Write)*(step+time.Duration(s.writing-1)*perAnswer), 0, func() {
			s.writing--
			s.done++
			s.keep(j) // in use until now
			j.router.ended(w, j)
		})
		if len(s.waiting) > 0 {
			s.read(w)
		}
	})
}

// end is the time until the server has read a prompt that arrives now, in seconds.
func (s *server) end(now time.Duration, j *job) float64 {
	kept, end := map[int64]bool{}, max(0, s.until-now).Seconds()
	for n, next := range append(slices.Clip(s.waiting), j) {
		found := int64(s.kept.match(next.Blocks))
		for found < int64(len(next.Blocks)) && kept[next.Blocks[found]] {
			found++
		}
		if n > 0 || len(s.waiting) == 0 {
			end += startup.Seconds() + float64(next.Read-found*trace.BlockTokens)/s.rate
		}
		for _, b := range next.full() {
			kept[b] = true
		}
	}
	return end
}

// missing is the number of tokens of a prompt that the server must read: always the last one.
func (s *server) missing(j *job) int64 {
	return j.Read - min(int64(s.kept.match(j.Blocks)), max(j.Read-1, 0)/trace.BlockTokens)*trace.BlockTokens
}

// running is vLLM's num_requests_running: the responses that are generated, and the prompt that is read.
func (s *server) running() int { return s.writing + min(len(s.waiting), 1) }

// stalled is the number of prompts that wait.
func (s *server) stalled() int { return max(len(s.waiting)-1, 0) }

// cache is an LRU cache of blocks.
type cache struct {
	limit, n int
	clock    int32
	last     []int32 // by block: its last use; 0 is not cached
	order    []use   // all uses, in order of time
}

type use struct {
	block int64
	when  int32
}

// match is the number of blocks in the cached prefix of a prompt.
func (c *cache) match(blocks []int64) int {
	for i, b := range blocks {
		if b >= int64(len(c.last)) || c.last[b] == 0 {
			return i
		}
	}
	return len(blocks)
}

// put uses a prompt's blocks, the last one first, so that a prefix outlives what follows it.
func (c *cache) put(blocks []int64) (stored, removed []int64) {
	for _, b := range slices.Backward(blocks) {
		if more := int(b) + 1 - len(c.last); more > 0 {
			c.last = append(c.last, make([]int32, more)...)
		}
		if c.last[b] == 0 {
			c.n++
			stored = append(stored, b)
		}
		c.clock++
		c.last[b] = c.clock
		c.order = append(c.order, use{b, c.clock})
	}
	for ; c.n > c.limit; c.order = c.order[1:] {
		if u := c.order[0]; c.last[u.block] == u.when {
			c.last[u.block] = 0
			c.n--
			removed = append(removed, u.block)
		}
	}
	return stored, removed
}
