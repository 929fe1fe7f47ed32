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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

var update = flag.Bool("update", false, "write the table of docs/operate.md")

// The table of statuses in docs/operate.md is generated from the code:
//
//	go test ./internal/record -run TestStatusTable -update
func TestStatusTable(t *testing.T) {
	const (
		path  = "../../docs/operate.md"
		begin = "<!-- begin: made by TestStatusTable -->\n"
		end   = "<!-- end -->\n"
	)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	rows := []Problem{ProblemOf(assert.AnError)}
	for _, p := range problems {
		rows = append(rows, p.Problem)
	}
	for _, r := range []*Refusal{
		ErrMalformed, ErrFraming, ErrTarget, ErrRequest, ErrCrossSite, ErrForeignHost, ErrMethod, ErrSlow, ErrMode, ErrLoop,
	} {
		rows = append(rows, ProblemOf(r))
	}
	slices.SortFunc(rows, func(a, b Problem) int {
		return strings.Compare(fmt.Sprint(a.Status, a.Reason, a.Title), fmt.Sprint(b.Status, b.Reason, b.Title))
	})
	var table strings.Builder
	table.WriteString("| status | reason | what it says | outcome |\n|---|---|---|---|\n")
	for _, p := range rows {
		outcome := p.Outcome.String()
		if p.Outcome == intake.Shed {
			outcome += ", " + p.Shedding.String()
		}
		fmt.Fprintf(&table, "| %d | `%s` | %s | %s |\n", p.Status, p.Reason, p.Title, outcome)
	}
	help, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| \\d+ \\| `[a-z-]+` \\|").FindAllString(string(help), -1) {
		assert.Contains(t, table.String(), row, "docs/troubleshooting.md")
	}
	want := before + begin + table.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test ./internal/record -run TestStatusTable -update writes it anew")
}

// Every error of the packages below has a problem type other than "internal error".
func TestEveryErrorHasItsProblem(t *testing.T) {
	for _, err := range []error{
		ErrShutdown, ErrGone, ErrNoAnswer, ErrFirstByte, ErrDeadline, ErrMalformed, intake.ErrTooLarge, intake.ErrNoRoom,
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
		"1": dispatch.ErrAtLimit, "": ErrNoAnswer, "3600": &dispatch.LaterError{Err: dispatch.ErrRate, After: 1e18},
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
