package executor

import (
	"cmp"
	"context"
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

func (p Priority) String() string { return [priorities]string{"high", "low"}[p] }

// Key is all that the result of a joblet depends on: joblets with equal keys have
// equal results.
type Key struct {
	Kind    Kind
	Project string
	Version int64  // of the project's data
	Inputs  string // what else the result depends on
}

// Joblet is a part of a job that runs without interruption.
type Joblet struct {
	Key   Key
	Cores int // the most that it can use; 0 is one
	// Uncached keeps the result out of the cache: only jobs that need it while it is computed share it.
	Uncached bool
	// Work computes the result from the result of the joblet before it, which is
	// nil for the first. The context ends only when the executor closes. The joblet has so many
	// cores: what it can use of those that were free when it started.
	Work func(ctx context.Context, input any, cores int) (Result, error)
}

// Result is what a joblet computed. Jobs share it, so nobody may change it.
type Result struct {
	Value any
	Bytes int64 // its size in the cache
}

// node is a joblet that is ready or runs, with the jobs that need it. Only a running
// node may be without jobs.
type node struct {
	joblet     Joblet
	input      Result
	running    bool
	cores      int       // that it holds
	ready      time.Time // since when it waits or waited for a core
	started    time.Time
	jobs       []*Job
	rank       rank // the best of its jobs; fixed once the node runs
	queueIndex int
}

// rank orders joblets: by priority, then by the turns of their jobs, then by the order
// in which these came.
type rank struct {
	priority   Priority
	turn       time.Time
	submission uint64
}

func (r rank) before(o rank) bool {
	return cmp.Or(
		cmp.Compare(r.priority, o.priority),
		r.turn.Compare(o.turn),
		cmp.Compare(r.submission, o.submission),
	) < 0
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
