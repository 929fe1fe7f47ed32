package executor

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Kind is what a joblet does.
type Kind uint8

// The kinds of a job's joblets. Each needs the result of the one before it.
const (
	FeedSource Kind = iota
	SharedOperators
	Operators
	OutputFeed
	kinds
)

// Kinds returns every kind, in order.
func Kinds() [kinds]Kind { return [kinds]Kind{FeedSource, SharedOperators, Operators, OutputFeed} }

func (k Kind) String() string {
	return [kinds]string{"feed_source", "shared_operators", "operators", "output_feed"}[k]
}

// Priority orders joblets that wait for a core.
type Priority uint8

const (
	High Priority = iota
	Low
	priorities
)

// Priorities returns every priority, the best first.
func Priorities() [priorities]Priority { return [priorities]Priority{High, Low} }

func (p Priority) String() string { return [priorities]string{"high", "low"}[p] }

// Key is all that the result of a joblet depends on: joblets with equal keys have
// equal results.
type Key struct {
	Kind    Kind
	Project string
	Version int64  // of the project's data
	Inputs  string // what else the result depends on
}

// Joblet is a part of a job that runs on one core without interruption.
type Joblet struct {
	Key Key
	// Work computes the result from the result of the joblet before it, which is
	// nil for the first. The context ends only when the executor closes.
	Work func(ctx context.Context, input any) (Result, error)
}

// Result is what a joblet computed. Jobs share it, so nobody may change it.
type Result struct {
	Value any
	Bytes int64 // its size in the cache
}

type nodeState uint8

const (
	waiting nodeState = iota // for the result of the joblet before it
	ready                    // to run; stalled while no core is free
	running
)

// node is a joblet that has not ended, with the jobs that need it. Only a running
// node may be without jobs.
type node struct {
	joblet     Joblet
	state      nodeState
	before     *node   // this one waits for its result; nil once the input is there
	after      []*node // they wait for this one's result
	input      Result
	jobs       map[*job]bool
	rank       rank // the best of its jobs; fixed once the node runs
	started    time.Time
	queueIndex int
}

// rank orders joblets: by priority, then by the order in which jobs came.
type rank struct {
	priority   Priority
	submission uint64
}

func (r rank) before(o rank) bool {
	return r.priority < o.priority || r.priority == o.priority && r.submission < o.submission
}

// bestRank is the best rank of the node's jobs.
func (n *node) bestRank() rank {
	best := rank{priority: priorities}
	for j := range n.jobs {
		if j.rank.before(best) {
			best = j.rank
		}
	}
	return best
}

// sortedJobs returns the node's jobs in the order of their submission: the order of
// a map is random.
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
