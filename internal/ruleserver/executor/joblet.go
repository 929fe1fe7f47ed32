package executor

import "context"

// Kind is what a joblet does.
type Kind uint8

// A job's joblets, in the order in which they need each other.
const (
	FeedSource Kind = iota
	SharedOperators
	Operators
	OutputFeed
	kinds
)

// Kinds lists every kind, in order.
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

// Priorities lists every priority, the best first.
func Priorities() [priorities]Priority { return [priorities]Priority{High, Low} }

func (p Priority) String() string { return [priorities]string{"high", "low"}[p] }

// Key names a joblet by all that its result depends on: joblets with equal keys
// give equal results.
type Key struct {
	Kind    Kind
	Project string
	Version int64  // of the project's data
	Inputs  string // what else the result depends on
}

// Joblet is a part of a job that runs on one core without interruption.
type Joblet struct {
	Key Key
	// Work makes the joblet's result from that of the joblet before it in the
	// chain, nil for the first. Its context ends only when the executor is
	// closed.
	Work func(ctx context.Context, input any) (Result, error)
}

// Result is what a joblet made. It is shared, so nobody may change it.
type Result struct {
	Value any
	Bytes int64 // what it takes of the cache
}
