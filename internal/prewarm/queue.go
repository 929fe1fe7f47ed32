package prewarm

import "time"

// maxWaiting bounds the prefetches that wait, for all upstreams together.
const maxWaiting = 1000

// queue is the prefetches that wait for their turn at each upstream.
type queue struct {
	gap     time.Duration
	waiting int
	of      map[string][]Prefetch // by upstream
	last    map[string]time.Time  // that one was due there, if less than a gap ago
}

func newQueue(gap time.Duration) *queue {
	return &queue{gap: gap, of: map[string][]Prefetch{}, last: map[string]time.Time{}}
}

// add puts prefetches behind those that wait. What is too much is left out.
func (q *queue) add(plan []Prefetch) {
	for _, f := range plan[:min(len(plan), maxWaiting-q.waiting)] {
		q.of[f.Upstream] = append(q.of[f.Upstream], f)
		q.waiting++
	}
}

// due takes out what may be sent now: one for each upstream, a gap apart.
func (q *queue) due(now time.Time) (due []Prefetch) {
	for upstream, at := range q.last {
		if now.Sub(at) >= q.gap {
			delete(q.last, upstream)
		}
	}
	for upstream, list := range q.of {
		if _, tooSoon := q.last[upstream]; tooSoon {
			continue
		}
		due = append(due, list[0])
		q.last[upstream] = now
		q.waiting--
		if q.of[upstream] = list[1:]; len(list) == 1 {
			delete(q.of, upstream)
		}
	}
	return due
}
