package logging

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

func TestWhichJobsAreLogged(t *testing.T) {
	records := []*record.Job{
		{Outcome: intake.Answered, Total: time.Second},
		{Outcome: intake.Answered, Total: time.Hour},
		{Outcome: intake.Gone, Total: time.Second},
		{Outcome: intake.NoAnswer, Total: time.Second},
	}
	for jobs, want := range map[string][]string{
		allJobs:    {"info answered 1", "info answered 3600", "info gone 1", "warn no_answer 1"},
		slowJobs:   {"info answered 3600", "warn no_answer 1"},
		failedJobs: {"warn no_answer 1"},
		noJobs:     nil,
	} {
		core, logs := observer.New(zap.DebugLevel)
		l := NewJobs(zap.New(core))
		set := Default()
		set.Jobs = jobs
		var got []string
		for _, r := range records {
			l.Write(set, r)
			for _, e := range logs.TakeAll() {
				fields := e.ContextMap()
				got = append(got, fmt.Sprint(e.Level, " ", fields["outcome"], " ", fields["total_seconds"]))
			}
		}
		assert.Equal(t, want, got, jobs)
	}
}

// A share of the good jobs is logged, evenly; of the failed ones, all are.
func TestAShareOfTheJobsIsLogged(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := NewJobs(zap.New(core))
	set := Settings{Jobs: allJobs, Slow: time.Minute, Share: 0.1}
	for i := range 1000 {
		l.Write(set, &record.Job{Outcome: intake.Answered})
		assert.Equal(t, (i+1)/10, logs.Len())
	}
	logs.TakeAll()
	for range 10 {
		l.Write(set, &record.Job{Outcome: intake.Truncated})
	}
	assert.Equal(t, 10, logs.Len())
	set.Share = 0
	l.Write(set, &record.Job{Outcome: intake.Answered})
	assert.Equal(t, 10, logs.Len())
}

// Unread bodies are told of once a minute, whichever jobs are logged.
func TestUnreadBodiesAreWarnedOf(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := NewJobs(zap.New(core))
	set := Settings{Jobs: noJobs, Slow: time.Minute}
	begin := time.Unix(1_800_000_000, 0)
	for _, r := range []record.Job{
		{Arrived: begin, Unread: "it is no POST", Body: 0},
		{Arrived: begin, Body: 5},
		{Arrived: begin, Unread: "encoded", Body: 5},
		{Arrived: begin, Total: 59 * time.Second, Unread: "encoded", Body: 5},
		{Arrived: begin.Add(time.Minute), Unread: "a form", Body: -1},
	} {
		l.Write(set, &r)
	}
	var got []map[string]any
	for _, e := range logs.All() {
		assert.Equal(t, zap.WarnLevel, e.Level)
		got = append(got, e.ContextMap())
	}
	assert.Equal(t, []map[string]any{{"jobs": int64(1), "last": "encoded"}, {"jobs": int64(2), "last": "a form"}}, got)
}

// The line of a job has all that its record tells, and leaves out what did not happen.
func TestTheLineOfAJob(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := NewJobs(zap.New(core))
	line := func(r *record.Job) map[string]any {
		l.Write(Default(), r)
		return logs.TakeAll()[0].ContextMap()
	}
	usual := line(&record.Job{ID: "1", Status: 200, Completeness: intake.Complete})
	assert.Equal(t, map[string]any{
		"id": "1", "session": "", "project": "", "priority": "low", "read": "unread", "outcome": "answered", "status": 200,
		"attempts": []any{}, "queue_seconds": 0.0, "ttfb_seconds": 0.0, "total_seconds": 0.0,
		"body_bytes": int64(0), "answer_bytes": int64(0), "answer": "complete",
	}, usual)
	failed := errors.New("connection reset")
	whole := line(&record.Job{
		Facts:  intake.Facts{Session: intake.NewText("s"), Project: intake.NewText("p"), Priority: selection.High},
		Queued: time.Second, TTFB: 2 * time.Second, Total: 3 * time.Second, Body: 4, Bytes: 5,
		Unread: "encoded", Reason: "no-answer", Unframed: true, Unkept: true, Err: failed, Outcome: intake.NoAnswer,
		Attempts: []record.Attempt{{
			Upstream: "a:1", Outcome: pool.Refused, Cache: selection.Cached, Start: time.Second, End: 3 * time.Second, Repeated: true, Err: failed,
		}},
	})
	for key, want := range map[string]any{
		"session": "s", "project": "p", "priority": "high", "queue_seconds": 1.0, "ttfb_seconds": 2.0, "total_seconds": 3.0,
		"body_bytes": int64(4), "answer_bytes": int64(5), "unread": "encoded", "reason": "no-answer", "unframed": true,
		"replay_disabled": true, "error": "connection reset",
		"attempts": []any{map[string]any{
			"upstream": "a:1", "outcome": "refused", "cache": "cached", "seconds": 2.0, "repeated": true, "error": "connection reset",
			"why": "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000",
		}},
	} {
		assert.Equal(t, want, whole[key], key)
	}
}

func TestSettingsRefuseNonsense(t *testing.T) {
	var f settings.Faults
	Default().Check(&f)
	assert.NoError(t, f.Err())
	Settings{Level: "warning", Jobs: "few", Share: math.NaN()}.Check(&f)
	assert.EqualError(t, f.Err(), `level: "warning" is not one of debug, info, warn, error; did you mean warn?
jobs: "few" is not one of all, slow, failed, none
slow: 0s must be positive
share: NaN is not a share from 0 to 1`)
}

// An attempt tells what its upstream says of the job, as far as it does.
func TestAttemptsAreLogged(t *testing.T) {
	for want, hint := range map[string]*pool.Hint{
		"":           nil,
		" 1.5 - -":   {Waited: 1500 * time.Millisecond, Fetched: -1},
		" - 2 false": {Waited: -1, Fetched: 2 * time.Second, Known: true},
		" 0 0 true":  {Known: true, Cached: true},
	} {
		core, logs := observer.New(zap.DebugLevel)
		l := NewJobs(zap.New(core))
		l.Write(Default(), &record.Job{Attempts: []record.Attempt{{Upstream: "a:1", End: time.Second, Hint: hint}}})
		a := logs.All()[0].ContextMap()["attempts"].([]any)[0].(map[string]any)
		assert.Equal(t, []any{"a:1", 1.0}, []any{a["upstream"], a["seconds"]})
		got := ""
		for _, key := range []string{"upstream_wait_seconds", "upstream_fetch_seconds", "upstream_cached"} {
			switch value, told := a[key]; {
			case told:
				got += fmt.Sprint(" ", value)
			case hint != nil:
				got += " -"
			}
		}
		assert.Equal(t, want, got)
	}
}
