package main

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
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

// A project is busy at the upstream that answered its jobs, not at one that was tried before.
func TestBusiestAtAnUpstream(t *testing.T) {
	c, now := newConsole(nil), time.Unix(1e9, 0)
	r := &record.Job{
		Facts: intake.Facts{Project: intake.NewText("7"), Key: 7}, Outcome: intake.Answered,
		Attempts: []record.Attempt{{Upstream: "a:1"}, {Upstream: "b:1"}},
	}
	c.ended(now, r)
	r.Outcome = intake.Gone
	c.ended(now, r)
	assert.Equal(t, []quality.Busy{{Key: 7, Name: "7", Jobs: 2}}, c.busiest(now, "", 9))
	assert.Equal(t, []quality.Busy{{Key: 7, Name: "7", Jobs: 1}}, c.busiest(now, "b:1", 9))
	assert.Empty(t, c.busiest(now, "a:1", 9))
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

// BenchmarkObserve is what is done for a job only to be seen, with the settings of an
// empty file: figures, projects, metrics and the log line. The jobs are of 5,000
// projects and go to 4 upstreams, which tell of their load (hints) or do not (plain).
func BenchmarkObserve(b *testing.B) {
	for name, hint := range map[string]*pool.Hint{
		"plain": nil, "hints": {Waited: time.Millisecond, Fetched: -1, Known: true, Cached: true},
	} {
		b.Run(name, func(b *testing.B) {
			addresses := []string{"127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9003"}
			cfg := config.Default()
			cfg.Discovery.Static = addresses
			s, err := newSidecar(&cfg, nil, quiet(b))
			require.NoError(b, err)
			s.metrics.Joined(addresses)
			s.served.machine.Follow(addresses)
			random := rand.New(rand.NewPCG(1, 2))
			projects := make([]intake.Facts, 5000)
			for i := range projects {
				id := strconv.Itoa(10_000 + i)
				projects[i] = intake.Facts{Project: intake.NewText(id), Key: intake.Key(id)}
			}
			r := &record.Job{
				ID: "0c4a3c7b6f0e4e7aa5c1f6a1b3f7d2e9", Read: intake.Full, Body: 4096, Bytes: 12, Status: 200,
				Outcome: intake.Answered, Completeness: intake.Complete, Queued: 1234,
				Attempts: make([]record.Attempt, 1),
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Arrived = time.Now()
				r.Facts = projects[random.IntN(len(projects))]
				start := time.Duration(20_000 + random.IntN(5_000))
				r.TTFB = start + time.Duration(500_000+random.IntN(1_000_000))
				r.Total = r.TTFB + time.Duration(30_000+random.IntN(10_000))
				r.Attempts[0] = record.Attempt{
					Upstream: addresses[random.IntN(len(addresses))], RunnerUp: "127.0.0.1:9000", RunnerUpCost: 0.002,
					Cache: selection.Cached, Cost: selection.Cost{Total: 0.001, Placement: 0.001},
					Outcome: pool.Answered, Start: start, End: r.TTFB, Hint: hint,
				}
				s.observe(r)
			}
		})
	}
}
