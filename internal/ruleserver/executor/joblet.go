package executor

import (
	"cmp"
	"context"
	"time"
)

// Kind is the kind of a joblet.
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

// Key identifies the result of a joblet: joblets with equal keys have
// equal results.
type Key struct {
	Kind    Kind
	Project string
	Version int64  // of the project's data
	Inputs  string // hash of everything else that the result depends on
}

// Joblet is a part of a job that runs without interruption.
type Joblet struct {
	Key   Key
	Cores int // maximum number of cores that it can use; 0 is one
	// Uncached keeps the result out of the cache: only jobs that need it while it is computed share it.
	Uncached bool
	// Work computes the result from the result of the joblet before it, which is
	// nil for the first. The context ends only when the executor closes. cores is how many
	// cores the joblet got.
	Work func(ctx context.Context, input any, cores int) (Result, error)
}

// Result is the result of a joblet. Jobs share it, so nobody may change it.
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
	cores      int       // cores that it occupies
	ready      time.Time // when it started to wait for a core
	started    time.Time
	jobs       []*Job
	rank       rank // the best of its jobs; fixed once the node runs
	queueIndex int
}

// rank orders joblets: by priority, then by the turns of their jobs (package order), then by
// the arrival of their jobs.
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
