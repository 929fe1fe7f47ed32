package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// ended is the time at which the jobs of these tests end.
var ended = time.Unix(1_800_000_000, 123_456_789)

func write(log *Log, set Settings, r *record.Job) {
	r.Arrived = ended.Add(-r.Total)
	log.Job(set, r)
}

// read returns a log, and a function that returns the lines since its last call.
func read(t *testing.T) (*Log, func() []map[string]any) {
	var text bytes.Buffer
	log, err := New(&text, "debug")
	require.NoError(t, err)
	return log, func() (lines []map[string]any) {
		require.NoError(t, log.Sync())
		for from := json.NewDecoder(&text); from.More(); {
			var fields map[string]any
			require.NoError(t, from.Decode(&fields))
			lines = append(lines, fields)
		}
		text.Reset()
		return lines
	}
}

func TestWhichJobsAreLogged(t *testing.T) {
	records := []*record.Job{
		{Outcome: intake.Answered, Total: time.Second},
		{Outcome: intake.Answered, Total: time.Hour},
		{Outcome: intake.Gone, Total: time.Second},
		{Outcome: intake.NoAnswer, Total: time.Second},
	}
	for jobs, want := range map[string][]string{
		allJobs:    {"info answered 1", "info answered 3600", "info gone 1", "warn no_answer 1"},
		failedJobs: {"warn no_answer 1"},
		noJobs:     nil,
		"of warn":  {"warn no_answer 1"}, // a job's line also needs the level
	} {
		log, lines := read(t)
		set := Default()
		if set.Jobs = jobs; jobs == "of warn" {
			set.Jobs = allJobs
			log.Level.SetLevel(zap.WarnLevel)
		}
		var got []string
		for _, r := range records {
			write(log, set, r)
			for _, fields := range lines() {
				got = append(got, fmt.Sprint(fields["level"], " ", fields["outcome"], " ", fields["total_seconds"]))
			}
		}
		assert.Equal(t, want, got, jobs)
	}
}

// Successful jobs are sampled evenly, and all failed jobs are logged.
func TestAShareOfTheJobsIsLogged(t *testing.T) {
	log, lines := read(t)
	set := Settings{Jobs: allJobs, Share: 0.1}
	for i := range 1000 {
		write(log, set, &record.Job{Outcome: intake.Answered})
		assert.Len(t, lines(), (i+1)/10-i/10)
	}
	for range 10 {
		write(log, set, &record.Job{Outcome: intake.Truncated})
	}
	assert.Len(t, lines(), 10)
	set.Share = 0
	write(log, set, &record.Job{Outcome: intake.Answered})
	assert.Empty(t, lines())
}

// The line of a job has all set fields of its record and no others.
func TestTheLineOfAJob(t *testing.T) {
	log, lines := read(t)
	line := func(r *record.Job) map[string]any {
		write(log, Default(), r)
		return lines()[0]
	}
	usual := line(&record.Job{ID: "1", Status: 200, Completeness: intake.Complete})
	assert.Equal(t, map[string]any{
		"level": "info", "ts": ended.Format(time.RFC3339Nano), "msg": "job",
		"id": "1", "session": "", "project": "", "priority": "low", "read": "unread", "outcome": "answered", "status": 200.0,
		"attempts": []any{}, "queue_seconds": 0.0, "ttfb_seconds": 0.0, "total_seconds": 0.0,
		"body_bytes": 0.0, "answer_bytes": 0.0, "answer": "complete",
	}, usual)
	const failed = "connection reset"
	whole := line(&record.Job{
		Method: "POST", Path: "/jobs/1\n" + strings.Repeat("x", 1000), Peer: "127.0.0.1:4711",
		Facts: intake.Facts{
			Session: "s", Project: "p", Priority: selection.High,
			Queue: 15 * time.Second, Evaluate: time.Minute, Stream: time.Hour,
		},
		Queued: time.Second, TTFB: 2 * time.Second, Total: 3 * time.Second, Body: 4, Bytes: 5, Completeness: intake.Partial,
		Unread: "encoded", Reason: "no-answer", Unframed: true, Unkept: true, RetryRefused: true, Err: failed, Outcome: intake.NoAnswer,
		Attempts: []record.Attempt{{
			Upstream: "a:1", Outcome: pool.Refused, Cache: selection.Cached, Start: time.Second, End: 3 * time.Second, Err: failed,
			Hint: &pool.Hint{Waited: -1, Fetched: 2 * time.Second, Known: true},
		}},
	})
	for key, want := range map[string]any{
		"method": "POST", "path": `/jobs/1\n` + strings.Repeat("x", 500) + "...", "peer": "127.0.0.1:4711",
		"session": "s", "project": "p", "priority": "high", "queue_seconds": 1.0, "ttfb_seconds": 2.0, "total_seconds": 3.0,
		"queue_timeout_seconds": 15.0, "first_byte_timeout_seconds": 60.0, "stream_timeout_seconds": 3600.0,
		"body_bytes": 4.0, "answer_bytes": 5.0, "unread": "encoded", "reason": "no-answer", "unframed": true,
		"replay_disabled": true, "retry_refused": true, "error": "connection reset",
		"attempts": []any{map[string]any{
			"upstream": "a:1", "outcome": "refused", "cache": "cached", "seconds": 2.0, "error": "connection reset",
			"upstream_fetch_seconds": 2.0, "upstream_cached": false, // the upstream did not report the wait
			"why": "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000",
		}},
	} {
		assert.Equal(t, want, whole[key], key)
	}
}

// Log lines of libraries become lines of this log, and their text becomes no field.
func TestLibraries(t *testing.T) {
	old, flags, to := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() { slog.SetDefault(old); log.SetFlags(flags); log.SetOutput(to) })
	l, lines := read(t)
	l.CaptureLibraries()
	log.Print("http: unsolicited response")
	slog.With("a", 1).WithGroup("g").Warn("invalid limit", "msg", "forged", "level", "debug")
	slog.Error("failed")
	slog.Info("started")
	got := lines()
	want := []map[string]any{
		{"level": "warn", "msg": "http: unsolicited response"},
		{"level": "warn", "msg": "invalid limit", "details": "a=1 g.msg=forged g.level=debug"},
		{"level": "error", "msg": "failed"}, {"level": "info", "msg": "started"},
	}
	for _, line := range got {
		delete(line, "ts")
	}
	assert.Equal(t, want, got)
}

// Every line has a maximum length, regardless of who chose its text.
func TestLinesAreBounded(t *testing.T) {
	var out bytes.Buffer
	l, err := New(&out, "info")
	require.NoError(t, err)
	long := strings.Repeat("é", 1000)
	l.With(zap.String("a", long)).Info(long, zap.Error(errors.New(long)), zap.NamedError("none", nil),
		zap.Strings("upstreams", slices.Repeat([]string{"10.0.0.1:80"}, 10_000)))
	require.NoError(t, l.Sync())
	assert.Less(t, out.Len(), 8<<10)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	assert.Equal(t, strings.Repeat("é", 254)+"...", line["error"])
	assert.Len(t, line["upstreams"], 100)
	assert.EqualValues(t, 10_000, line["upstreams_total"])
}
