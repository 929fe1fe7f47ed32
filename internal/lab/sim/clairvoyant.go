package sim

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// clairvoyant is a policy that no sidecar could have. It knows what every
// server holds at this instant and how long each joblet will last, and sends
// a job where it would get to its rules first if no other came. It shows what
// better reports and better estimates could gain. It is greedy and does not
// see the jobs that are still to come, so it is not the best that could be done.
type clairvoyant struct {
	w       *world
	servers map[uint64]*server // by the views' ID
}

// Pick implements selection.Policy. Of equal costs the server with the
// fewest jobs is taken, because all that is idle has the same cost.
func (c *clairvoyant) Pick(_ selection.Job, views []selection.View, rng *rand.Rand) int {
	crowding := c.crowding()
	best, least, fewest, ties := -1, never, 0, 0
	for i := range views {
		s := c.server(views[i].ID)
		if s.sick(c.w.now) {
			continue
		}
		fetch := time.Duration(float64(s.fetchTime(c.w.asking, c.w.now)) * crowding)
		if fetch > least {
			continue
		}
		cost := fetch + s.startsIn(c.w.asking, c.w.now, least-fetch)
		jobs := len(s.present)
		if cost > least || cost == least && best >= 0 && jobs > fewest {
			continue
		}
		if cost < least || jobs < fewest {
			ties = 0
		}
		if ties++; rng.IntN(ties) == 0 {
			best = i
		}
		least, fewest = cost, jobs
	}
	if best < 0 { // all are sick
		best = rng.IntN(len(views))
	}
	return best
}

// server is the one with an ID. A server that restarts under a new name has a new ID.
func (c *clairvoyant) server(id uint64) *server {
	if c.servers[id] == nil {
		for _, s := range c.w.servers {
			c.servers[selection.UpstreamID(s.address)] = s
		}
	}
	return c.servers[id]
}

// crowding is the factor on fetches in a fleet that is behind, and must not
// fall further behind by fetching. It grows with the square of the jobs for each
// core, like that of selection.Expected on placements.
func (c *clairvoyant) crowding() float64 {
	jobs, cores := 0.0, 0.0
	for _, s := range c.w.servers {
		if s.up {
			jobs += float64(len(s.present))
			cores += float64(s.cores)
		}
	}
	busy := jobs / max(cores, 1)
	return max(1, 2*busy*busy)
}

// fetchTime is how long the job would be busy with its project's data.
func (s *server) fetchTime(j *job, now time.Duration) time.Duration {
	k := key{project: j.project, version: j.version, phase: feedSource}
	if s.cache.has(k) {
		return 0
	}
	if b := s.shared[k]; b != nil && b.running {
		return b.ends - now
	}
	return j.load
}

// startsIn is how long the job would wait for its first joblet, or any time
// above limit if it is longer than that.
func (s *server) startsIn(j *job, now, limit time.Duration) time.Duration {
	first := *j
	first.phase = feedSource // an earlier attempt may have come further
	if s.skip(&first); first.phase == finished || s.busy < s.cores {
		return 0
	}
	k, _, _ := first.joblet()
	b := s.shared[k]
	switch {
	case b == nil:
		b = &joblet{priority: j.priority, seq: s.seq + 1}
	case b.running:
		return 0
	}
	return newForecast(s, b, j.priority, now).start(limit)
}

// skip moves a job past everything that is cached.
func (s *server) skip(j *job) {
	for ; j.phase < finished; j.phase++ {
		if k, work, _ := j.joblet(); work > 0 && !s.cache.has(k) {
			return
		}
	}
}
