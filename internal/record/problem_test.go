package record

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// The table of statuses in docs/operate.md is made from the code:
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
	for _, r := range refusals(t, "../") {
		rows = append(rows, ProblemOf(&r))
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
	want := before + begin + table.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test ./internal/record -run TestStatusTable -update writes it anew")
}

// refusals are those that the packages below a folder declare.
func refusals(t *testing.T, folder string) (all []Refusal) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && isRefusal(lit.Type) {
				all = append(all, refusal(t, lit))
			}
			return true
		})
		return nil
	}))
	require.NotEmpty(t, all)
	return all
}

func isRefusal(typ ast.Expr) bool {
	if s, ok := typ.(*ast.SelectorExpr); ok {
		typ = s.Sel
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.Name == "Refusal"
}

// refusal reads a literal whose fields are all plain values.
func refusal(t *testing.T, lit *ast.CompositeLit) (r Refusal) {
	t.Helper()
	for _, e := range lit.Elts {
		field := e.(*ast.KeyValueExpr)
		value, ok := field.Value.(*ast.BasicLit)
		require.True(t, ok, "write the %v of a refusal as a plain value", field.Key)
		var err error
		switch field.Key.(*ast.Ident).Name {
		case "Status":
			r.Status, err = strconv.Atoi(value.Value)
		case "Reason":
			r.Reason, err = strconv.Unquote(value.Value)
		case "Title":
			r.Title, err = strconv.Unquote(value.Value)
		}
		require.NoError(t, err)
	}
	require.NotEmpty(t, r.Title)
	return r
}

// No error that the packages below know is a fault of pilotfish's own.
func TestEveryErrorHasItsProblem(t *testing.T) {
	for _, err := range []error{
		ErrShutdown, ErrGone, ErrNoAnswer, ErrFirstByte, ErrDeadline, ErrMalformed, intake.ErrTooLarge, intake.ErrNoRoom,
		dispatch.ErrFull, dispatch.ErrDisplaced, dispatch.ErrWaited, dispatch.ErrAtLimit,
		pool.ErrEmpty, pool.ErrNoneEligible, pool.ErrNotAdmitted, pool.ErrAllTried,
	} {
		p := ProblemOf(fmt.Errorf("more about it: %w", err))
		assert.NotEqual(t, "internal", p.Reason, "%v", err)
		assert.Equal(t, "urn:pilotfish:problem:"+p.Reason, p.Type)
		assert.Equal(t, "more about it: "+err.Error(), p.Detail)
	}
	assert.Equal(t, "internal", ProblemOf(assert.AnError).Reason)
}

// Where an error wraps two that have a problem each, the more telling one counts.
func TestTheMoreTellingErrorCounts(t *testing.T) {
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

// A job of a project at its limit hears when there will be room.
func TestWhenToComeAgain(t *testing.T) {
	for want, err := range map[string]error{
		"13": &dispatch.AtLimit{Limit: 2, RetryAfter: 12300 * time.Millisecond},
		"5":  &dispatch.AtLimit{Limit: 2},
		"":   ErrNoAnswer,
	} {
		h := http.Header{}
		ProblemOf(fmt.Errorf("more: %w", err)).SetHeaders(h, 5*time.Second)
		assert.Equal(t, want, h.Get("Retry-After"))
	}
	p := ProblemOf(&dispatch.AtLimit{})
	assert.Equal(t, http.StatusTooManyRequests, p.Status)
	assert.Equal(t, intake.ProjectLimit, p.Shedding)
}

func TestAProblemIsWrittenWhole(t *testing.T) {
	w := httptest.NewRecorder()
	ProblemOf(dispatch.ErrFull).Write(w, 2*time.Second)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, http.Header{
		"Content-Type": {"application/problem+json"}, "Content-Length": {strconv.Itoa(w.Body.Len())},
		"Pilotfish-Reason": {"queue-full"}, "Retry-After": {"2"},
	}, w.Header())
	assert.JSONEq(t, string(ProblemOf(dispatch.ErrFull).Body()), w.Body.String())
}

func TestARefusedMethodHearsWhichThereAre(t *testing.T) {
	h := http.Header{}
	ProblemOf(&Refusal{Status: http.StatusMethodNotAllowed}).SetHeaders(h, time.Second)
	assert.Equal(t, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", h.Get("Allow"))
	assert.Empty(t, h.Get("Retry-After"))
}
