package executor

import (
	"cmp"
	"slices"
	"time"
)

type nodeState uint8

const (
	waiting nodeState = iota // for the result of the joblet before it
	ready                    // for a core: stalled when none is free
	running
)

// node is a joblet that some job needs and that has not ended, with all the
// jobs that need it. Only a running node may have none.
type node struct {
	joblet     Joblet
	state      nodeState
	before     *node   // whose result it waits for; nil when it has its input
	after      []*node // that wait for its result
	input      Result
	jobs       map[*job]bool
	rank       rank // the best of its jobs'; as it was at the start once it runs
	started    time.Time
	queueIndex int
}

// rank orders joblets: by priority, and then by the submission of the job.
type rank struct {
	priority   Priority
	submission uint64
}

func (r rank) before(o rank) bool {
	return r.priority < o.priority || r.priority == o.priority && r.submission < o.submission
}

// bestRank is that of the job which the node serves first.
func (n *node) bestRank() rank {
	best := rank{priority: priorities}
	for j := range n.jobs {
		if j.rank.before(best) {
			best = j.rank
		}
	}
	return best
}

// sortedJobs gives the node's jobs in the order of their submission, so that
// what happens to them does not depend on the order of a map.
func (n *node) sortedJobs() (jobs []*job) {
	for j := range n.jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.rank.submission, b.rank.submission) })
	return jobs
}

// readyQueue is a heap of ready nodes, the best rank first.
type readyQueue []*node

func (q readyQueue) Len() int           { return len(q) }
func (q readyQueue) Less(a, b int) bool { return q[a].rank.before(q[b].rank) }
func (q readyQueue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].queueIndex, q[b].queueIndex = a, b
}

func (q *readyQueue) Push(n any) {
	n.(*node).queueIndex = len(*q)
	*q = append(*q, n.(*node))
}

func (q *readyQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
