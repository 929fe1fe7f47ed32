package ruleserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// errCost says that the cost which a job brought cannot be read.
type errCost struct{ err error }

func (e errCost) Error() string { return fmt.Sprintf("header %s: %v", CostHeader, e.err) }
func (e errCost) Unwrap() error { return e.err }

// costOf is the cost of a request's joblets: its own where it brings one to a
// server that trusts it.
func (s *Server) costOf(r *http.Request) (Cost, error) {
	own := r.Header.Get(CostHeader)
	if own == "" || !s.config.TrustCost {
		return s.config.Cost, nil
	}
	cost, err := ParseCost(own)
	if err != nil {
		return Cost{}, errCost{err}
	}
	return cost, nil
}

// lengthen keeps a joblet going until its cost is over.
func (c Cost) lengthen(ctx context.Context, begin time.Time, key executor.Key, feed *rules.Feed) error {
	left := c.of(key.Kind, key.Project, len(feed.Items), feed.Bytes()) - time.Since(begin)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return executor.ErrClosed
	}
}
