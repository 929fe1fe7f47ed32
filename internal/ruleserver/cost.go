package ruleserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// Cost is the minimum duration of joblets. With it a laptop can simulate a cluster: a
// joblet does its work and then sleeps on its core until its cost has passed. The zero
// Cost adds nothing. bytes is the minimum size of a feed in the cache. With cores, each joblet
// except the fetch can use this many cores, and its duration is divided by the number it gets.
type Cost struct {
	fetch, shared, operators, output time.Duration

	bytes, cores int64
}

// costHeader is the request header with the job's own cost, in the format of ParseCost.
const costHeader = "X-Cost"

// ParseCost parses the value of the flag --cost: parts NAME=DURATION separated by
// commas, for fetch, shared, operators and output; bytes=NUMBER and cores=NUMBER. For example
//
//	fetch=2s,shared=400ms,operators=800ms,output=100ms,bytes=5000000,cores=4
func ParseCost(text string) (Cost, error) {
	var c Cost
	if text == "" {
		return c, nil
	}
	parts := map[string]any{
		"fetch": &c.fetch, "shared": &c.shared, "operators": &c.operators, "output": &c.output, "bytes": &c.bytes, "cores": &c.cores,
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch to := parts[name].(type) {
		case *time.Duration:
			if *to, err = time.ParseDuration(value); err != nil || *to < 0 {
				return Cost{}, fmt.Errorf("cost: %s: want a duration such as 2s or 400ms, got %q", name, value)
			}
		case *int64:
			if *to, err = strconv.ParseInt(value, 10, 64); err != nil || *to < 1 {
				return Cost{}, fmt.Errorf("cost: %s: want a number above 0, got %q", name, value)
			}
		default:
			return Cost{}, fmt.Errorf("cost: %q is unknown or given twice; known are fetch, shared, operators, output, bytes, cores", name)
		}
		delete(parts, name)
	}
	return c, nil
}

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (c *Cost) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCost(string(text))
	return err
}

func (c Cost) of(kind executor.Kind) time.Duration {
	return [...]time.Duration{
		executor.FeedSource: c.fetch, executor.SharedOperators: c.shared, executor.Operators: c.operators, executor.OutputFeed: c.output,
	}[kind]
}

// lasting returns the work of a joblet that takes at least the duration least divided by its number of
// cores. The input of the first joblet is nil.
func (s *Server) lasting(least time.Duration, work func(*rules.Feed) (executor.Result, error)) func(context.Context, any, int) (executor.Result, error) {
	return func(ctx context.Context, input any, cores int) (executor.Result, error) {
		timer := time.NewTimer(least / time.Duration(cores))
		defer timer.Stop()
		feed, _ := input.(*rules.Feed)
		result, err := work(feed)
		if err != nil {
			return executor.Result{}, err
		}
		select {
		case <-timer.C:
			return result, nil
		case <-ctx.Done():
			return executor.Result{}, executor.ErrClosed
		}
	}
}
