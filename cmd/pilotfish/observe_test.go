package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestJobsThatAreNotReadAreShown(t *testing.T) {
	c, now := newConsole(nil), time.Unix(1e9, 0)
	c.ended(now, &record.Job{Read: intake.Unread, Unread: "it is no POST"}) // and has no body
	c.ended(now, &record.Job{Body: 1})
	assert.Zero(t, c.unread)
	c.ended(now, &record.Job{Body: -1, Unread: "it is encoded"})
	c.ended(now.Add(time.Second), &record.Job{Body: 10, Unread: "its beginning lacks the project"})
	assert.Equal(t, admin.Unread{Jobs: 2, At: now.Add(time.Second), Why: "its beginning lacks the project"}, c.unread)
}

// Times of an attempt are from its own start, and only the last one has the response.
func TestAttemptsAsMetricsCountThem(t *testing.T) {
	hint := &pool.Hint{Waited: time.Second}
	r := &record.Job{
		TTFB: 5 * time.Second, Total: 9 * time.Second,
		Attempts: []record.Attempt{
			{Upstream: "a:1", Outcome: pool.NotStarted, Cache: selection.Cached, Cost: selection.Cost{Wait: 0.25}},
			{Upstream: "b:1", Outcome: pool.Answered, Start: 2 * time.Second, Hint: hint},
		},
	}
	for _, c := range []struct {
		complete        intake.Completeness
		outcome         pool.Outcome
		first, lastByte time.Duration
	}{
		{intake.Complete, pool.Answered, 3 * time.Second, 7 * time.Second},
		{intake.Partial, pool.Truncated, 3 * time.Second, -1},
		{intake.Absent, pool.TimedOut, -1, -1},
	} {
		r.Completeness, r.Attempts[1].Outcome = c.complete, c.outcome
		assert.Equal(t, metrics.Attempt{
			Upstream: "a:1", Outcome: pool.NotStarted, Believed: selection.Cached, Expected: 0.25, FirstByte: -1, LastByte: -1,
		}, attempted(r, 0))
		assert.Equal(t, metrics.Attempt{
			Upstream: "b:1", Outcome: c.outcome, FirstByte: c.first, LastByte: c.lastByte, Hint: hint,
		}, attempted(r, 1))
	}
}
