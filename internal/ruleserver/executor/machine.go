package executor

import (
	"container/heap"
	"slices"
	"time"
)

// machine decides which joblets run. After start has returned nil, no joblet is
// stalled while a core is free.
type machine struct {
	cores, busy int
	cache       *cache
	nodes       map[Key]*node
	ready       readyQueue
	jobs        map[*job]bool // submitted, and not left yet
	submitted   uint64        // jobs so far
	totals      Totals
}

func newMachine(cores int, cacheBytes int64) *machine {
	return &machine{cores: cores, cache: newCache(cacheBytes), nodes: map[Key]*node{}, jobs: map[*job]bool{}}
}

// submit takes a job in. The caller also calls leave, once.
func (m *machine) submit(now time.Time, r Request) *job {
	m.submitted++
	j := &job{request: r, rank: rank{r.Priority, m.submitted}, received: now, cached: true}
	m.jobs[j] = true

	have, last, missing := m.find(r.Chain)
	for n := last; n != nil; n = n.before {
		j.needs = slices.Insert(j.needs, 0, n)
	}
	for _, joblet := range missing {
		last = m.add(joblet, last)
		j.needs = append(j.needs, last)
		if joblet.Key.Kind == FeedSource {
			j.fetches = last
		}
	}
	if len(j.needs) == 0 {
		j.start(now)
		j.end(now, have, nil)
		return j
	}
	for _, n := range j.needs {
		n.jobs[j] = true
		m.rerank(n)
		j.cached = j.cached && n.joblet.Key.Kind != FeedSource
	}
	switch next := j.needs[0]; next.state {
	case running:
		j.start(now)
	case waiting: // it is new, and its input is there
		m.makeReady(next, have)
	}
	return j
}

// find looks for the last part of the chain that is there already: a cached result
// or a joblet that other jobs need. missing is the rest of the chain.
func (m *machine) find(chain []Joblet) (have Result, last *node, missing []Joblet) {
	for i := len(chain) - 1; i >= 0; i-- {
		if result, ok := m.cache.get(chain[i].Key); ok {
			return result, nil, chain[i+1:]
		}
		if n := m.nodes[chain[i].Key]; n != nil {
			return Result{}, n, chain[i+1:]
		}
	}
	return Result{}, nil, chain
}

func (m *machine) add(joblet Joblet, before *node) *node {
	n := &node{joblet: joblet, before: before, jobs: map[*job]bool{}}
	if before != nil {
		before.after = append(before.after, n)
	}
	m.nodes[joblet.Key] = n
	return n
}

func (m *machine) makeReady(n *node, input Result) {
	n.state, n.before, n.input = ready, nil, input
	heap.Push(&m.ready, n)
}

// rerank updates the node's rank after a change of its jobs. A running node keeps
// its rank.
func (m *machine) rerank(n *node) {
	if n.state == running {
		return
	}
	n.rank = n.bestRank()
	if n.state == ready {
		heap.Fix(&m.ready, n.queueIndex)
	}
}

// start gives a free core to the best ready joblet, and returns it with the jobs
// that it starts. It returns nil without a free core or a ready joblet. The caller
// calls finish when the joblet ends.
func (m *machine) start(now time.Time) (n *node, started []*job) {
	if m.busy == m.cores || len(m.ready) == 0 {
		return nil, nil
	}
	n = heap.Pop(&m.ready).(*node)
	n.state, n.started = running, now
	m.busy++
	m.totals.Started[n.rank.priority][n.joblet.Key.Kind]++
	for _, j := range n.sortedJobs() {
		if j.started.IsZero() {
			started = append(started, j)
		}
		j.start(now)
	}
	return n, started
}

// finish frees the core of a running joblet, and returns the jobs that end with it.
func (m *machine) finish(now time.Time, n *node, result Result, err error) (ended []*job) {
	if n.state != running || m.nodes[n.joblet.Key] != n {
		panic("BUG: executor: finished a joblet that does not run")
	}
	m.busy--
	m.totals.Completed[n.rank.priority][n.joblet.Key.Kind]++
	delete(m.nodes, n.joblet.Key)
	jobs := n.sortedJobs()
	if err != nil {
		for _, j := range jobs {
			m.forget(j)
			j.end(now, Result{}, err)
		}
		return jobs
	}
	m.cache.put(now, n.joblet.Key, result)
	for _, next := range n.after {
		m.makeReady(next, result)
	}
	for _, j := range jobs {
		if j.fetches == n {
			j.fetch, j.fetches = now.Sub(n.started), nil
		}
		if j.needs = j.needs[1:]; len(j.needs) == 0 {
			j.end(now, result, nil)
			ended = append(ended, j)
		}
	}
	return ended
}

// expire ends the job with an error if it has passed its deadline.
func (m *machine) expire(now time.Time, j *job) {
	if !j.ended.IsZero() || now.Before(j.deadline()) {
		return
	}
	err := ErrEvaluateTimeout
	if j.started.IsZero() {
		err = ErrQueueTimeout
	}
	m.forget(j)
	j.end(now, Result{}, err)
}

// leave takes a job out, in any state. Joblets that only this job needs are dropped,
// except one that runs.
func (m *machine) leave(j *job) {
	if !m.jobs[j] {
		panic("BUG: executor: a job left twice")
	}
	m.forget(j)
	delete(m.jobs, j)
}

// forget removes the job from the joblets that it needs, and drops the joblets that
// no other job needs.
func (m *machine) forget(j *job) {
	for _, n := range j.needs {
		delete(n.jobs, j)
		if len(n.jobs) > 0 || n.state == running {
			m.rerank(n)
			continue
		}
		if n.state == ready {
			heap.Remove(&m.ready, n.queueIndex)
		}
		if n.before != nil {
			n.before.after = slices.DeleteFunc(n.before.after, func(o *node) bool { return o == n })
		}
		delete(m.nodes, n.joblet.Key)
	}
	j.needs = nil
}

func (m *machine) load() Load {
	l := Load{Cores: m.cores, Busy: m.busy, Totals: m.totals}
	l.Totals.Evictions = m.cache.evictions
	for j := range m.jobs {
		if !j.stalled() {
			l.Running[j.rank.priority]++
		}
	}
	for _, n := range m.ready {
		l.Stalled[n.rank.priority]++
	}
	return l
}
