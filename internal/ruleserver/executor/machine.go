package executor

import (
	"container/heap"
	"slices"
	"time"

	"example.org/pilotfish/internal/ruleserver/order"
)

// machine decides which joblets run. After start has returned nil, no joblet is
// stalled while a core is free.
type machine struct {
	cores, busy int
	cache       *cache
	nodes       map[Key]*node
	ready       readyQueue
	lengths     order.Lengths[string] // by project
	jobs        map[*Job]bool         // submitted, before leave
	submitted   uint64                // jobs so far
	statistics  AllStatistics
}

func newMachine(cores int, cacheBytes int64) *machine {
	return &machine{cores: cores, cache: newCache(cacheBytes), nodes: map[Key]*node{}, jobs: map[*Job]bool{}}
}

// submit adds a job. The caller must call leave once.
func (m *machine) submit(now time.Time, r Request) *Job {
	m.submitted++
	project := r.Chain[0].Key.Project
	j := &Job{
		changed: make(chan struct{}, 1), request: r, rank: rank{priority: r.Priority, submission: m.submitted},
		expected: r.Expected, before: m.open(project), received: now, cached: true,
	}
	if !r.Unlearned {
		j.expected = m.lengths.Expected(project, r.Expected)
	}
	m.jobs[j] = true
	m.advance(now, j)
	return j
}

// open returns the expected core time of a project's jobs that have not ended.
func (m *machine) open(project string) (sum time.Duration) {
	for j := range m.jobs {
		if j.ended.IsZero() && j.request.Chain[0].Key.Project == project {
			sum += j.expected
		}
	}
	return sum
}

// advance moves a job to the next joblet that it needs, or to its end. The job continues
// after the last part of its chain that exists: a cached result, or a joblet
// that other jobs need.
func (m *machine) advance(now time.Time, j *Job) {
	chain := j.request.Chain
	for i := len(chain) - 1; i >= j.at; i-- {
		if result, ok := m.cache.get(chain[i].Key); ok {
			m.statistics.skip(chain[j.at : i+1])
			j.at, j.result = i+1, result
			break
		}
		if m.nodes[chain[i].Key] != nil {
			m.statistics.skip(chain[j.at:i])
			m.statistics.Kinds[chain[i].Key.Kind].Joined++
			j.at = i
			break
		}
	}
	if j.at == len(chain) {
		j.start(now)
		j.end(now, nil)
		if j.worked > 0 {
			m.lengths.Learn(chain[0].Key.Project, j.worked, j.request.Expected)
		}
		return
	}
	j.rank.turn = j.received
	if !j.request.Unlearned || j.expected > 0 {
		j.rank.turn = j.received.Add(order.Delay(j.expected, j.worked, j.before, j.request.Queue))
	}
	joblet := chain[j.at]
	n := m.nodes[joblet.Key]
	if n == nil {
		n = &node{joblet: joblet, input: j.result, rank: j.rank, ready: now}
		m.nodes[joblet.Key] = n
		heap.Push(&m.ready, n)
		if joblet.Key.Kind == FeedSource {
			j.fetches = n
		}
	}
	n.jobs, j.needs = append(n.jobs, j), n
	m.rerank(n)
	if n.running {
		j.start(now)
	}
	j.cached = j.cached && joblet.Key.Kind != FeedSource
}

// rerank sets the rank of a node to the best rank of its jobs, after the jobs have changed. A running
// node keeps its rank.
func (m *machine) rerank(n *node) {
	if n.running {
		return
	}
	n.rank = n.jobs[0].rank
	for _, j := range n.jobs[1:] {
		if j.rank.before(n.rank) {
			n.rank = j.rank
		}
	}
	heap.Fix(&m.ready, n.queueIndex)
}

// start assigns free cores to the ready joblet with the best rank, and returns it. It returns nil
// without a free core or a ready joblet. The caller must call finish when the joblet ends.
func (m *machine) start(now time.Time) *node {
	if m.busy == m.cores || len(m.ready) == 0 {
		return nil
	}
	n := heap.Pop(&m.ready).(*node)
	n.running, n.started = true, now
	n.cores = min(max(n.joblet.Cores, 1), m.cores-m.busy)
	m.busy += n.cores
	for _, j := range n.jobs {
		j.start(now)
	}
	return n
}

// finish frees the cores of a running joblet, advances its jobs, and returns its record.
func (m *machine) finish(now time.Time, n *node, result Result, err error) JobletRecord {
	if !n.running || m.nodes[n.joblet.Key] != n {
		panic("BUG: executor: finished a joblet that does not run")
	}
	m.busy -= n.cores
	delete(m.nodes, n.joblet.Key)
	record := JobletRecord{
		Key: n.joblet.Key, Queue: n.started.Sub(n.ready), Run: now.Sub(n.started), Cores: n.cores,
		Bytes: result.Bytes, Jobs: len(n.jobs), Err: err,
	}
	m.statistics.add(record)
	if err == nil && !n.joblet.Uncached {
		m.cache.put(now, n.joblet.Key, result)
	}
	for _, j := range n.jobs {
		j.needs = nil
		j.worked += now.Sub(n.started)
		if j.fetches == n {
			j.fetch, j.fetches = now.Sub(n.started), nil
		}
		if err != nil {
			j.end(now, err)
			continue
		}
		j.at, j.result = j.at+1, result
		m.advance(now, j)
	}
	return record
}

// expire ends the job with an error if it has passed its deadline.
func (m *machine) expire(now time.Time, j *Job) {
	if !j.ended.IsZero() || now.Before(j.deadline()) {
		return
	}
	err := ErrEvaluateTimeout
	if j.started.IsZero() {
		err = ErrQueueTimeout
	}
	m.forget(j)
	j.end(now, err)
}

// withdraw ends a job that has not started with an error, and reports whether it did.
func (m *machine) withdraw(now time.Time, j *Job) bool {
	if !j.started.IsZero() || !j.ended.IsZero() {
		return false
	}
	m.forget(j)
	j.end(now, ErrWithdrawn)
	return true
}

// leave removes a job, in any state.
func (m *machine) leave(j *Job) {
	if !m.jobs[j] {
		panic("BUG: executor: a job left twice")
	}
	m.forget(j)
	delete(m.jobs, j)
}

// forget removes the job from the joblet that it needs, and drops the joblet if no
// other job needs it and it does not run.
func (m *machine) forget(j *Job) {
	n := j.needs
	if n == nil {
		return
	}
	j.needs = nil
	n.jobs = slices.DeleteFunc(n.jobs, func(o *Job) bool { return o == j })
	switch {
	case n.running:
	case len(n.jobs) > 0:
		m.rerank(n)
	default:
		heap.Remove(&m.ready, n.queueIndex)
		delete(m.nodes, n.joblet.Key)
	}
}

func (m *machine) load() Load {
	l := Load{Cores: m.cores, Busy: m.busy}
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
