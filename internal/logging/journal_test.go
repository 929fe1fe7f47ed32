package logging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// newJournal returns a journal, and a function that returns the lines since its last call.
func newJournal() (*Journal, func() []string) {
	core, logs := observer.New(zap.DebugLevel)
	return NewJournal(zap.New(core)), func() (lines []string) {
		for _, e := range logs.TakeAll() {
			fields := e.ContextMap()
			line := fmt.Sprintf("%v %v %s (%v)", e.Level, fields["upstream"], e.Message, fields["cause"])
			if last, ok := fields["last_error"]; ok {
				line += fmt.Sprintf(", %v", last)
			}
			lines = append(lines, line)
		}
		return lines
	}
}

// Lines have the words of the upstream's status.
func TestJournalOfOneUpstream(t *testing.T) {
	j, lines := newJournal()
	state := pool.State{Upstream: pool.Upstream{Address: "a:1"}}
	look := func() []string {
		for range 3 { // each change is logged once
			j.LogChanges([]pool.State{state})
		}
		return lines()
	}
	assert.Empty(t, look(), "nothing is known yet")
	state.ReportFresh = true
	assert.Empty(t, look())

	j.ReportFailed("a:1", false, errors.New("status 500"))
	assert.Empty(t, look(), "the last report still counts")
	state.ReportFresh = false
	assert.Empty(t, look(), "the next may be under way")
	j.ReportFailed("a:1", false, errors.New("status 500"))
	assert.Equal(t, []string{"warn a:1 the upstream does not report: its load is estimated from other jobs and upstreams (status 500)"}, look())
	state.ReportFresh = true
	assert.Equal(t, []string{"info a:1 the upstream reports again (<nil>)"}, look())

	j.AttemptFailed(&record.Attempt{Upstream: "a:1", Outcome: pool.NoAnswer, Err: "EOF"})
	j.AttemptFailed(&record.Attempt{Upstream: "a:1", Outcome: pool.Gone, Err: "the submitter disconnected"})
	state.Breaker, state.Reason = health.Status{State: health.Open, Why: "5 refused or lost connections in a row", Until: time.Unix(1, 0)}, pool.Shut
	assert.Equal(t, []string{
		"warn a:1 " + pool.BreakerOpened + ": jobs go elsewhere (5 refused or lost connections in a row), EOF",
		"warn <nil> panic: every breaker is open, so jobs go to all upstreams (<nil>)",
	}, look())
	state.Breaker.State, state.Breaker.Until, state.Reason = health.HalfOpen, time.Time{}, pool.Eligible
	assert.Equal(t, []string{"info <nil> the panic is over (<nil>)"}, look())
	state.Breaker = health.Status{State: health.Closed}
	assert.Equal(t, []string{"info a:1 breaker closed: the upstream works again (<nil>)"}, look())
	state.Breaker, state.Reason = health.Status{State: health.Open, Why: "health check failed: status 503"}, pool.Shut
	assert.Equal(t, "warn a:1 breaker opened: jobs go elsewhere (health check failed: status 503)", look()[0], "the error of the incident before is over")
	state.Breaker, state.Reason = health.Status{State: health.Closed}, pool.Eligible
	look()

	state.Suspect = "2 reports in a row failed"
	assert.Equal(t, []string{"warn a:1 the upstream is " + pool.IsSuspect + ": it seems to hang, and new jobs go elsewhere (2 reports in a row failed)"}, look())
	state.Suspect = ""
	assert.Equal(t, []string{"info a:1 the upstream is no longer suspect: it reports or responds again (<nil>)"}, look())

	state.Implausible = "4000 cores"
	assert.Equal(t, []string{"warn a:1 the upstream reports " + pool.IsImplausible + ": they count as unknown (4000 cores)"}, look())
	state.Implausible = ""
	assert.Equal(t, []string{"info a:1 the upstream's figures are plausible again (<nil>)"}, look())

	state.Slow = "responses take 9 times as long"
	assert.Equal(t, []string{"warn a:1 the upstream is " + pool.IsSlow + " (responses take 9 times as long)"}, look())
	state.Slow = ""
	assert.Equal(t, []string{"info a:1 the upstream is no longer slow (<nil>)"}, look())

	state.Draining, state.StopsAt = true, time.Now()
	assert.Equal(t, []string{"info a:1 the upstream drains: it gets no new jobs (<nil>)"}, look())
	state.Draining = false
	assert.Equal(t, []string{"info a:1 the upstream takes jobs again: it no longer drains (<nil>)"}, look())
}

// An invalid load header is logged once, and again after a minute without one.
func TestJournalOfInvalidLoadHeaders(t *testing.T) {
	j, lines := newJournal()
	states := []pool.State{{Upstream: pool.Upstream{Address: "a:1"}, ReportFresh: true}}
	const begins = "warn a:1 the upstream's load header is invalid: its load is not read from it (%s)"
	for _, fault := range []string{"stalled=x", "running=y"} {
		for range 100 {
			j.HintInvalid("a:1", errors.New(fault))
			j.LogChanges(states)
		}
		assert.Equal(t, []string{fmt.Sprintf(begins, fault)}, lines())
		for range hintPause {
			j.LogChanges(states)
		}
		assert.Equal(t, []string{"info a:1 the upstream has sent no invalid load header for a minute (<nil>)"}, lines())
	}
}

// An upstream that has never reported is logged once, after a few polls. Only a 404 means that it has no reports.
func TestJournalOfAnUpstreamThatNeverReports(t *testing.T) {
	for cause, want := range map[error]string{
		notFound{}:               "warn u0:1 the upstream reports nothing: its load is estimated from other jobs and upstreams (status 404)",
		errors.New("status 500"): "warn u0:1 the upstream has not reported yet: its load is estimated from other jobs and upstreams (status 500)",
	} {
		j, lines := newJournal()
		states := []pool.State{{Upstream: pool.Upstream{Address: "u0:1"}}, {Upstream: pool.Upstream{Address: "u1:1"}, ReportFresh: true}}
		for range enoughPolls - 1 {
			j.ReportFailed("u0:1", true, cause)
		}
		j.LogChanges(states)
		assert.Empty(t, lines())
		for range enoughPolls {
			j.ReportFailed("u0:1", true, cause)
			j.ReportFailed("u1:1", true, cause) // its load is known from responses
			j.LogChanges(states)
		}
		assert.Equal(t, []string{want}, lines())
	}
}

type notFound struct{}

func (notFound) Error() string        { return "status 404" }
func (notFound) Is(target error) bool { return target == fs.ErrNotExist }

// A dead process is logged in one line, although several checks fail.
func TestJournalOfAnUpstreamThatIsDown(t *testing.T) {
	j, lines := newJournal()
	up := pool.State{Upstream: pool.Upstream{Address: "a:1"}, ReportFresh: true}
	down := up
	down.DownSince, down.ReportFresh, down.Suspect = time.Date(2026, 3, 1, 19, 17, 30, 0, time.UTC), false, "it owes 3 answers"
	down.Breaker.Why, down.Slow = "connection refused", "10 times as slow"
	j.ReportFailed("a:1", false, errors.New("late"))
	for _, s := range []pool.State{up, down, down, up} {
		j.LogChanges([]pool.State{s})
	}
	assert.Equal(t, []string{"warn a:1 the upstream is " + pool.IsDown + ": jobs go elsewhere (connection refused since 2026-03-01 19:17 UTC)", "info a:1 the upstream is up again (<nil>)"}, lines())
}

// An upstream that left is forgotten, and logged as new when it returns.
func TestJournalForgets(t *testing.T) {
	j, lines := newJournal()
	state := pool.State{Upstream: pool.Upstream{Address: "a:1", Draining: true}}
	j.LogChanges([]pool.State{state})
	assert.Len(t, lines(), 1)
	j.ReportFailed("gone:1", false, errors.New("late"))
	j.LogChanges(nil)
	assert.Empty(t, j.seen)
	j.LogChanges([]pool.State{state})
	assert.Len(t, lines(), 1)
}

// Events are the log lines about the sidecar and its upstreams, including those below the log's level, but not the lines
// of libraries.
func TestEvents(t *testing.T) {
	log, err := New(io.Discard, "error")
	require.NoError(t, err)
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprint("u:", i)
	}
	log.Info("upstreams joined", zap.Strings("upstreams", many))
	log.Debug("too small to see")
	log.Quiet.Warn("http: a handshake failed")
	one := log.With(zap.String("upstream", "a:1"))
	for range 3 {
		one.Warn("the upstream is down: jobs go elsewhere", zap.String("cause", "connection refused"))
	}
	one.Info("the upstream is up again")
	log.Error("the configuration was not reloaded", zap.Error(errors.New("no such key")))
	events, all := log.Events.Last()
	assert.Equal(t, 6, all)
	for i := range events {
		assert.WithinDuration(t, time.Now(), events[i].At, time.Minute)
		events[i].At = time.Time{}
	}
	assert.Equal(t, []Event{
		{Times: 1, Level: "error", Text: "the configuration was not reloaded", Cause: "no such key"},
		{Times: 1, Level: "info", Text: "the upstream is up again", Upstreams: []string{"a:1"}},
		{Times: 3, Level: "warn", Text: "the upstream is down: jobs go elsewhere", Cause: "connection refused", Upstreams: []string{"a:1"}},
		{Times: 1, Level: "info", Text: "upstreams joined", Upstreams: []string{"u:0", "u:1", "u:2", "u:3", "u:4"}, MoreUpstreams: 195},
	}, events)
	for i := range 3 * keptEvents {
		log.Info(fmt.Sprint("event ", i))
	}
	events, _ = log.Events.Last()
	assert.Len(t, events, keptEvents)
	assert.Equal(t, "event 299", events[0].Text)
}
