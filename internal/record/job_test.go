package record

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

func TestAttemptsAndTheirReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Job{Arrived: time.Now(), Read: intake.NoProject}
		h := http.Header{}
		r.Explain(h)
		assert.Empty(t, h, "nothing was decided")

		time.Sleep(time.Second)
		r.Begin(time.Now(), pool.Choice{Address: "a:1", Cache: selection.Cached, Panic: true})
		time.Sleep(time.Second)
		failed := errors.New("connection refused")
		r.EndAttempt(time.Now(), pool.Refused, failed)
		r.Begin(time.Now(), pool.Choice{
			Address: "b:1", Cost: selection.Cost{Total: 2.5, Wait: .5, Fetch: 2}, RunnerUp: "c:1", RunnerUpCost: 3.25,
		})
		time.Sleep(time.Second)
		r.EndAttempt(time.Now(), pool.Answered, nil)

		first, second := r.Attempts[0], r.Attempts[1]
		assert.Equal(t, []any{time.Second, 2 * time.Second, pool.Refused, failed}, []any{first.Start, first.End, first.Outcome, first.Err})
		assert.Equal(t, []any{2 * time.Second, 3 * time.Second, pool.Answered}, []any{second.Start, second.End, second.Outcome})
		assert.Equal(t, "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000 panic", string(first.AppendWhy(nil)))
		r.Explain(h)
		assert.Equal(t, http.Header{
			"Pilotfish-Upstream": {"b:1"},
			"Pilotfish-Cache":    {"none"},
			"Pilotfish-Attempts": {"2"},
			"Pilotfish-Read":     {"no_project"},
			"Pilotfish-Why":      {"cost=2.500 wait=0.500 fetch=2.000 placement=0.000 stop=0.000 runner_up=c:1 runner_up_cost=3.250"},
		}, h)
	})
}

func TestQuality(t *testing.T) {
	arrived := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := Job{
		Arrived: arrived, Facts: intake.Facts{Priority: selection.High},
		Outcome: intake.Answered, Completeness: intake.Complete, TTFB: 5 * time.Second, Total: 8 * time.Second,
		Attempts: []Attempt{
			{Upstream: "a:1", Outcome: pool.NotStarted, Start: time.Second, End: 2 * time.Second, Hint: &pool.Hint{Waited: time.Hour}},
			{Upstream: "b:1", Outcome: pool.Answered, Start: 2 * time.Second, End: 8 * time.Second, Hint: &pool.Hint{Waited: time.Second}},
		},
	}
	want := quality.Job{
		Priority: selection.High, Outcome: intake.Answered, Completeness: intake.Complete,
		Arrived: arrived, FirstByte: 5 * time.Second, LastByte: 8 * time.Second, Waited: 3 * time.Second,
		Attempts: []quality.Attempt{
			{Upstream: "a:1", Outcome: pool.NotStarted, Start: time.Second, End: 2 * time.Second},
			{Upstream: "b:1", Outcome: pool.Answered, Start: 2 * time.Second, End: 8 * time.Second},
		},
	}
	assert.Equal(t, want, r.Quality(nil))
	want.Waited = -1
	for _, hint := range []*pool.Hint{nil, {Waited: -1}} {
		r.Attempts[1].Hint = hint
		assert.Equal(t, want, r.Quality(nil), "the upstream does not tell")
	}
	r.Attempts[1].Hint = &pool.Hint{Waited: time.Second}
	for o := range pool.Outcome(pool.Outcomes) {
		r.Attempts[1].Outcome = o
		assert.Equal(t, o == pool.Answered || o == pool.Failed, r.Quality(nil).Waited >= 0, "%v: only a whole response tells the wait of the job", o)
	}
	assert.Equal(t, quality.Job{Waited: -1, Attempts: []quality.Attempt{}}, (&Job{}).Quality([]quality.Attempt{}))
}

// A trace has what was measured, and of what the job costs the fetch alone.
func TestTrace(t *testing.T) {
	arrived := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := Job{
		Arrived: arrived, Outcome: intake.Answered, Completeness: intake.Complete,
		Facts:  intake.Facts{Project: intake.NewText("7"), Priority: selection.High, Queue: time.Second, Evaluate: 2 * time.Second, Stream: 3 * time.Second},
		Queued: time.Second / 2, TTFB: 5 * time.Second, Total: 8 * time.Second,
		Attempts: []Attempt{
			{Upstream: "a:1", Outcome: pool.Refused, Start: time.Second, End: time.Second / 2},
			{Upstream: "b:1", Outcome: pool.Answered, Cache: selection.Cached, Start: 2 * time.Second, End: 8 * time.Second, Hint: &pool.Hint{Fetched: time.Second / 4}},
		},
	}
	seconds := func(s float64) *float64 { return &s }
	want := trace.Job{
		Offset: 60, Project: "7", Priority: selection.High, Timeouts: trace.Timeouts{Queue: 1, Evaluate: 2, Stream: 3}, Load: 0.25,
		Measured: &trace.Measured{
			Outcome: "answered", Queued: seconds(0.5), TTFB: seconds(5), TTLB: seconds(8), Upstream: "b:1", Cache: "cached", Wait: seconds(0),
			Attempts: []trace.Attempt{{Upstream: "a:1", Outcome: "refused", Start: 1, End: 1}, {Upstream: "b:1", Outcome: "answered", Start: 2, End: 8}},
		},
	}
	assert.Equal(t, want, r.Trace(arrived.Add(-time.Minute)))

	r.Completeness = intake.Partial
	want.Offset, want.Measured.TTLB = 0, nil
	assert.Equal(t, want, r.Trace(arrived.Add(time.Minute)), "the trace began meanwhile")
	want.Load, want.Measured.Wait = 0, nil
	for _, hint := range []*pool.Hint{nil, {Waited: -1, Fetched: -1}} {
		r.Attempts[1].Hint = hint
		assert.Equal(t, want, r.Trace(arrived), "the upstream does not tell")
	}
	r.Completeness = intake.Absent
	want.Measured.TTFB, want.Measured.Upstream, want.Measured.Cache = nil, "", ""
	assert.Equal(t, want, r.Trace(arrived), "there was no response")
}

func TestOfManyAttemptsTheFirstAndTheLatestAreKept(t *testing.T) {
	var r Job
	for i := range maxAttempts + 5 {
		r.Begin(time.Now(), pool.Choice{Address: strconv.Itoa(i)})
	}
	require.Len(t, r.Attempts, maxAttempts)
	assert.Equal(t, []string{"0", "6"}, []string{r.Attempts[0].Upstream, r.Attempts[1].Upstream})
	assert.Equal(t, strconv.Itoa(maxAttempts+4), r.Attempt().Upstream)
}

func TestWhichResponsesSayThatNothingWasDone(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		want   bool
	}{
		{503, "", false}, {503, "Retry-After: 1", true}, {503, "Job-Started: no", true}, {503, "Job-Started: yes", false}, {500, "Retry-After: 1", false},
	} {
		h := http.Header{}
		if key, value, ok := strings.Cut(c.header, ": "); ok {
			h.Set(key, value)
		}
		assert.Equal(t, c.want, NotStarted(c.status, h), "%d %s", c.status, c.header)
	}
}

func TestWhatARequestSaysOfItsJob(t *testing.T) {
	var r Job
	r.Describe(&intake.Description{Facts: intake.Facts{Priority: selection.High}, Reading: intake.NoProject, Unread: "encoded"})
	assert.Equal(t, Job{Facts: intake.Facts{Priority: selection.High}, Read: intake.NoProject, Unread: "encoded"}, r)
	assert.False(t, r.PassedUnread(), "it has no body")
	r.Body = -1
	assert.True(t, r.PassedUnread())
	r.Unread = ""
	assert.False(t, r.PassedUnread())
}
