package prompts

import (
	"slices"
	"time"

	"example.org/pilotfish/lab/trace"
)

const (
	// step is how long a server takes to write a token of one answer, and perAnswer how much longer for each other
	// answer that it writes at the same time.
	step, perAnswer = 20 * time.Millisecond, 500 * time.Microsecond
	// startup is what reading a prompt takes however little of it is new.
	startup = 20 * time.Millisecond
)

// server is a model server, as vLLM with chunked prefill and prefix caching: it reads prompts in the order in which they
// came, one at a time, and writes all answers together meanwhile.
type server struct {
	rate    float64 // tokens per second
	kept    *cache
	waiting []*job        // the first is being read
	until   time.Duration // when it was read
	writing int

	counts
}

// counts are what a server's metrics sum up.
type counts struct {
	begun, answered, done int // jobs that it began to read, to answer, and that ended
	waited                time.Duration
	taken                 int64 // tokens of those that it began to read, without those that it had
}

func (s *server) receive(w *world, j *job) {
	s.waiting = append(s.waiting, j)
	if len(s.waiting) == 1 {
		s.read(w)
	}
}

// read begins with the prompt that came first. Only full blocks are kept, and the last token is read in any case.
func (s *server) read(w *world) {
	j := s.waiting[0]
	left := s.missing(j)
	j.found = int((j.Read - left) / trace.BlockTokens)
	s.begun++
	s.taken += left
	s.waited += w.now - j.arrived
	s.until = w.now + startup + trace.Duration(float64(left)/s.rate)
	w.events.Add(s.until, 0, func() {
		s.kept.put(j.full())
		s.waiting = s.waiting[1:]
		s.writing++
		s.answered++
		w.results = append(w.results, result{j.Offset, (w.now - j.arrived).Seconds(), j.found, len(j.Blocks)})
		j.router.answered(w, j)
		w.events.Add(w.now+time.Duration(j.Write)*(step+time.Duration(s.writing-1)*perAnswer), 0, func() {
			s.writing--
			s.done++
			s.kept.put(j.full()) // they were in use until now
			j.router.ended(w, j)
		})
		if len(s.waiting) > 0 {
			s.read(w)
		}
	})
}

// end is in how many seconds it will have read a prompt that comes now.
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

// missing is the tokens of a prompt that the server must read: the last one in any case.
func (s *server) missing(j *job) int64 {
	return j.Read - min(int64(s.kept.match(j.Blocks)), max(j.Read-1, 0)/trace.BlockTokens)*trace.BlockTokens
}

// running is what vLLM calls so: the answers that it writes, and the prompt that it reads.
func (s *server) running() int { return s.writing + min(len(s.waiting), 1) }

// stalled is the prompts that wait.
func (s *server) stalled() int { return max(len(s.waiting)-1, 0) }

// cache keeps the blocks that were used last.
type cache struct {
	limit, n int
	clock    int32
	last     []int32 // by block: when it was used; 0 is not there
	order    []use   // in time; a block is there once for each use
}

type use struct {
	block int64
	when  int32
}

// match is how many of a prompt's blocks are there, from the first on.
func (c *cache) match(blocks []int64) int {
	for i, b := range blocks {
		if b >= int64(len(c.last)) || c.last[b] == 0 {
			return i
		}
	}
	return len(blocks)
}

// put uses a prompt's blocks, the last first: so a beginning outlives what follows it.
func (c *cache) put(blocks []int64) {
	for _, b := range slices.Backward(blocks) {
		if more := int(b) + 1 - len(c.last); more > 0 {
			c.last = append(c.last, make([]int32, more)...)
		}
		if c.last[b] == 0 {
			c.n++
		}
		c.clock++
		c.last[b] = c.clock
		c.order = append(c.order, use{b, c.clock})
	}
	for ; c.n > c.limit; c.order = c.order[1:] {
		if u := c.order[0]; c.last[u.block] == u.when {
			c.last[u.block] = 0
			c.n--
		}
	}
}
