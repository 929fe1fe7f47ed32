package record

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/manual"
)

func TestAttemptsAndTheirReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Job{Arrived: time.Now(), Read: intake.NoProject}
		h := http.Header{}
		r.Explain(h)
		assert.Empty(t, h, "nothing was decided")

		time.Sleep(time.Second)
		r.Begin(time.Now(), &pool.Choice{Address: "a:1", Cache: selection.Cached, Explanation: pool.Explanation{Panic: true, Heavy: true, Prefetched: true}})
		time.Sleep(time.Second)
		failed := fmt.Errorf("%w: a:1: dial tcp a:1: connect: connection refused", ErrNoAnswer)
		r.EndAttempt(time.Now(), pool.Refused, failed)
		r.Begin(time.Now(), &pool.Choice{
			Address:     "b:1",
			Explanation: pool.Explanation{Cost: selection.Cost{Total: 2.5, Wait: .5, Fetch: 2}, RunnerUp: "c:1", RunnerUpCost: 3.25, Shadow: "d:1", ShadowCost: 4},
		})
		time.Sleep(time.Second)
		r.EndAttempt(time.Now(), pool.Answered, nil)

		first, second := r.Attempts[0], r.Attempts[1]
		assert.Equal(t, []any{time.Second, 2 * time.Second, pool.Refused, "connection refused", selection.Cached}, []any{first.Start, first.End, first.Outcome, first.Err, first.Cache})
		assert.Equal(t, []any{2 * time.Second, 3 * time.Second, pool.Answered}, []any{second.Start, second.End, second.Outcome})
		assert.Equal(t, "cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000 panic heavy prefetched", string(first.AppendWhy(nil)))
		r.Explain(h)
		assert.Equal(t, http.Header{
			"Pilotfish-Upstream": {"b:1"},
			"Pilotfish-Cache":    {"none"},
			"Pilotfish-Attempts": {"2"},
			"Pilotfish-Read":     {"no_project"},
			"Pilotfish-Why":      {"cost=2.500 wait=0.500 fetch=2.000 placement=0.000 stop=0.000 runner_up=c:1 runner_up_cost=3.250 shadow=d:1 shadow_cost=4.000"},
		}, h)
	})
}

// The duration without load is known only for a complete response with a reported wait.
func TestStretch(t *testing.T) {
	r := Job{
		Completeness: intake.Complete, Total: 8 * time.Second,
		Attempts: []Attempt{
			{Upstream: "a:1", Outcome: pool.NotStarted, Start: time.Second, Hint: &pool.Hint{Waited: time.Hour}},
			{Upstream: "b:1", Start: 2 * time.Second},
		},
	}
	last := &r.Attempts[1]
	for o := range pool.Outcome(pool.Outcomes) {
		last.Outcome, last.Hint = o, &pool.Hint{Waited: 2 * time.Second}
		times, ok := r.Stretch()
		require.Equal(t, o == pool.Answered || o == pool.Failed, ok, o)
		if ok {
			assert.Equal(t, 2.0, times)
		}
	}
	last.Outcome = pool.Answered
	for _, hint := range []*pool.Hint{nil, {Waited: -1}, {Waited: 6 * time.Second}, {Waited: time.Hour}} {
		last.Hint = hint
		_, ok := r.Stretch()
		assert.False(t, ok, "%+v", hint)
	}
	last.Hint, r.Completeness = &pool.Hint{}, intake.Partial
	_, ok := r.Stretch()
	assert.False(t, ok)
	_, ok = (&Job{Completeness: intake.Complete}).Stretch()
	assert.False(t, ok)
}

func TestOfManyAttemptsTheFirstAndTheLatestAreKept(t *testing.T) {
	var r Job
	for i := range maxAttempts + 5 {
		r.Begin(time.Now(), &pool.Choice{Address: strconv.Itoa(i)})
		r.Attempt().Hinted(pool.Hint{Waited: time.Duration(i)})
	}
	require.Len(t, r.Attempts, maxAttempts)
	for _, a := range r.Attempts {
		assert.Equal(t, a.Upstream, strconv.FormatInt(int64(a.Hint.Waited), 10), "the hint belongs to this attempt")
	}
	assert.Equal(t, []string{"0", "6"}, []string{r.Attempts[0].Upstream, r.Attempts[1].Upstream})
	assert.Equal(t, strconv.Itoa(maxAttempts+4), r.Attempt().Upstream)
}

func TestNotStarted(t *testing.T) {
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
		assert.Equal(t, []bool{c.want, c.want}, []bool{NotStarted(c.status, h), Limited(c.status-503+429, h)}, "%d %s", c.status, c.header)
	}
}

var update = flag.Bool("update", false, "write the table of docs/operate.md")

// The table of statuses in docs/operate.md is generated from the code:
//
//	go test ./internal/record -run TestStatusTable -update
func TestStatusTable(t *testing.T) {
	rows := []Problem{ProblemOf(assert.AnError)}
	for _, p := range problems {
		rows = append(rows, p.Problem)
	}
	for _, r := range []*Refusal{
		ErrMalformed, ErrFraming, ErrHead, ErrTarget, ErrRequest, ErrCrossSite, ErrForeignHost, ErrMethod, ErrSlow, ErrExpectation, ErrLongHead,
		ErrMode, ErrCoding, ErrVersion, ErrLoop,
	} {
		rows = append(rows, ProblemOf(r))
	}
	slices.SortFunc(rows, func(a, b Problem) int {
		return strings.Compare(fmt.Sprint(a.Status, a.Reason, a.Title), fmt.Sprint(b.Status, b.Reason, b.Title))
	})
	var table strings.Builder
	table.WriteString("| status | reason | title | outcome | shed reason |\n|---|---|---|---|---|\n")
	for _, p := range rows {
		shedding := ""
		if p.Outcome == intake.Shed {
			shedding = p.Shedding.String()
		}
		fmt.Fprintf(&table, "| %d | `%s` | %s | %s | %s |\n", p.Status, p.Reason, p.Title, p.Outcome, shedding)
	}
	help, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| \\d+ \\| `[a-z-]+` \\|").FindAllString(string(help), -1) {
		assert.Contains(t, table.String(), row, "docs/troubleshooting.md")
	}
	manual.Compare(t, "../../docs/operate.md", table.String(), "go test ./internal/record -run TestStatusTable", *update)
}

// Every error of the packages below has a problem type other than "internal error".
func TestEveryErrorHasItsProblem(t *testing.T) {
	for _, err := range []error{
		ErrShutdown, ErrAborted, ErrGone, ErrNoAnswer, ErrNotDialed, ErrFirstByte, ErrDeadline, ErrMalformed, intake.ErrTooLarge, intake.ErrNoRoom,
		dispatch.ErrFull, dispatch.ErrDisplaced, dispatch.ErrWaited, dispatch.ErrAtLimit, dispatch.ErrRate,
		pool.ErrEmpty, pool.ErrNoneEligible, pool.ErrNotAdmitted, pool.ErrAllTried,
	} {
		p := ProblemOf(fmt.Errorf("more about it: %w", err))
		assert.NotEqual(t, "internal", p.Reason, "%v", err)
		assert.Equal(t, "urn:pilotfish:problem:"+p.Reason, p.Type)
		assert.Equal(t, "more about it: "+err.Error(), p.Detail)
	}
	assert.Equal(t, "internal", ProblemOf(assert.AnError).Reason)
}

// If an error wraps two errors that have a problem type, the more specific one applies.
func TestPrecedenceOfWrappedErrors(t *testing.T) {
	for want, err := range map[string]error{
		"deadline":       fmt.Errorf("%w: up:1: %w", ErrNoAnswer, ErrFirstByte),
		"shutting-down":  fmt.Errorf("%w: %w", ErrGone, ErrShutdown),
		"submitter-gone": fmt.Errorf("%w: up:1: %w", ErrNoAnswer, ErrGone),
	} {
		assert.Equal(t, want, ProblemOf(err).Reason)
	}
	assert.Equal(t, intake.Displaced, ProblemOf(dispatch.ErrDisplaced).Shedding)
	assert.Equal(t, intake.QueueFull, ProblemOf(dispatch.ErrFull).Shedding)
}

func TestRetryAfter(t *testing.T) {
	for want, err := range map[string]error{
		"1": dispatch.ErrAtLimit, "": ErrAborted, "3600": &dispatch.LaterError{Err: dispatch.ErrRate, After: 1e18},
		"9": &dispatch.LaterError{Err: dispatch.ErrAtLimit, After: 8*time.Second + 1},
	} {
		h := http.Header{}
		ProblemOf(fmt.Errorf("more: %w", err)).SetHeaders(h)
		assert.Equal(t, want, h.Get("Retry-After"))
	}
	p := ProblemOf(dispatch.ErrAtLimit)
	assert.Equal(t, http.StatusTooManyRequests, p.Status)
	assert.Equal(t, intake.ProjectLimit, p.Shedding)
}

func TestProblemDocument(t *testing.T) {
	w := httptest.NewRecorder()
	ProblemOf(dispatch.ErrFull).Write(w)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, http.Header{
		"Content-Type": {"application/problem+json"}, "Content-Length": {strconv.Itoa(w.Body.Len())},
		"Pilotfish-Reason": {"queue-full"}, "Retry-After": {"1"},
	}, w.Header())
	assert.JSONEq(t, string(ProblemOf(dispatch.ErrFull).Body()), w.Body.String())
}

func TestMethodNotAllowedListsMethods(t *testing.T) {
	h := http.Header{}
	ProblemOf(&Refusal{Status: http.StatusMethodNotAllowed}).SetHeaders(h)
	assert.Equal(t, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", h.Get("Allow"))
	assert.Empty(t, h.Get("Retry-After"))
}

func TestTextsOfErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxText)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"refused: \"ä\" 'b' 我", "refused: \"ä\" 'b' 我"},
		{"a\x00b\nc\xff\u2028\u200b", `a\x00b\nc\xff\u2028\u200b`},
		{long, long},
		{long + "x", long[3:] + "..."},
		{long[3:] + "我", long[3:] + "我"},
		{long[2:] + "我", long[3:] + "..."},
		{strings.Repeat("\xff", 1<<20), strings.Repeat(`\xff`, 127) + `\...`},
		{strings.Repeat("我", 1<<20), strings.Repeat("我", 169) + "..."},
	} {
		got := textOf(errors.New(c.text))
		assert.Equal(t, c.want, got)
		assert.LessOrEqual(t, len(got), maxText)
	}
	assert.Empty(t, textOf(nil))
}
