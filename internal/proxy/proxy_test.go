package proxy

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// An exchange does not change after it was read: no method but read assigns one
// of its fields, whatever the exchange is called there.
func TestAnExchangeDoesNotChangeAfterRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	set := token.NewFileSet()
	fields := map[string]bool{}
	assigned := map[string][]string{} // by function
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == "exchange" {
						for _, f := range s.Type.(*ast.StructType).Fields.List {
							for _, n := range f.Names {
								fields[n.Name] = true
							}
						}
					}
				}
			case *ast.FuncDecl:
				ast.Inspect(d, func(n ast.Node) bool {
					if a, ok := n.(*ast.AssignStmt); ok {
						for _, to := range a.Lhs {
							if field, ok := fieldOfExchange(to); ok {
								assigned[d.Name.Name] = append(assigned[d.Name.Name], field)
							}
						}
					}
					return true
				})
			}
		}
	}
	require.Greater(t, len(fields), 5, "the type exchange was found")
	require.Contains(t, assigned, "read", "the assignments in read were found")
	for function, names := range assigned {
		for _, field := range names {
			if fields[field] {
				assert.Equal(t, "read", function, "%s assigns %s", function, field)
			}
		}
	}
}

// fieldOfExchange is the field that x.field or a.x.field names.
func fieldOfExchange(e ast.Expr) (string, bool) {
	field, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	switch of := field.X.(type) {
	case *ast.Ident:
		return field.Sel.Name, of.Name == "x"
	case *ast.SelectorExpr:
		return field.Sel.Name, of.Sel.Name == "x"
	}
	return "", false
}

// An attempt that finds the body spent by the one before it is no fault of the
// submitter's.
func TestASpentBodyIsNotTheSubmittersFault(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "/", nil)
	require.NoError(t, err)
	a := attempt{x: &exchange{r: r}, lease: &balancer.Lease{Choice: &pool.Choice{Address: "up:1"}}}
	f := a.explain(upstreamclient.Progress{Begun: true}, &upstreamclient.BodyError{Err: intake.ErrSpent})
	assert.Equal(t, pool.Gone, f.Outcome, "nor the upstream's")
	assert.Equal(t, http.StatusBadGateway, record.ProblemOf(f.err).Status)
	f = a.explain(upstreamclient.Progress{Begun: true}, &upstreamclient.BodyError{Err: intake.ErrTooLarge})
	assert.Equal(t, http.StatusRequestEntityTooLarge, record.ProblemOf(f.err).Status)
}

// Only a body whose framing is broken is the submitter's fault. A connection that ends, in
// whichever way, is none.
func TestWhyABodyCouldNotBeRead(t *testing.T) {
	synctest.Test(t, testWhyABodyCouldNotBeRead)
}

func testWhyABodyCouldNotBeRead(t *testing.T) {
	odd := errors.New("an error that nobody knows")
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx    context.Context
		proto  int
		length int64
		err    error
		status int
	}{
		{t.Context(), 1, 10, syscall.ECONNRESET, record.StatusGone},
		{t.Context(), 1, 10, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, record.StatusGone},
		{t.Context(), 1, 10, io.ErrUnexpectedEOF, record.StatusGone},
		{t.Context(), 1, 10, io.ErrNoProgress, record.StatusGone},
		{t.Context(), 1, 10, odd, record.StatusGone},
		{t.Context(), 1, -1, odd, http.StatusBadRequest},
		{t.Context(), 1, -1, io.ErrUnexpectedEOF, record.StatusGone},
		{left, 1, -1, odd, record.StatusGone},
		{left, 2, 10, odd, record.StatusGone},
		{t.Context(), 2, 10, odd, http.StatusBadRequest},
		{t.Context(), 1, 10, os.ErrDeadlineExceeded, http.StatusRequestTimeout},
		{t.Context(), 1, -1, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, http.StatusRequestTimeout},
		{t.Context(), 1, 10, intake.ErrNoRoom, http.StatusServiceUnavailable},
		{t.Context(), 1, 10, intake.ErrTooLarge, http.StatusRequestEntityTooLarge},
	} {
		r := (&http.Request{ProtoMajor: c.proto, ContentLength: c.length}).WithContext(c.ctx)
		x := exchange{r: r}
		err := x.sendingFailed(fmt.Errorf("reading the body: %w", c.err))
		assert.Equal(t, c.status, record.ProblemOf(err).Status, "HTTP/%d, length %d: %v", c.proto, c.length, c.err)
	}
	for after, status := range map[time.Duration]int{justAfter - 1: record.StatusGone, justAfter + 1: http.StatusBadRequest} {
		leaving, cancel := context.WithTimeout(t.Context(), after)
		x := exchange{r: (&http.Request{ProtoMajor: 2, ContentLength: 10}).WithContext(leaving)}
		assert.Equal(t, status, record.ProblemOf(x.sendingFailed(odd)).Status, "it leaves after %v", after)
		cancel()
	}
}

// The table of bounds in docs/operate.md has those that no key changes.
func TestBoundsInTheDocuments(t *testing.T) {
	server, err := NewServer(http.NotFoundHandler(), ServerConfig{})
	require.NoError(t, err)
	h := server.http
	var none *balancer.Balancer
	c := Config{Settings: Default(), Reader: new(intake.Reader), Budget: intake.NewBudget(0), Claimer: none}
	require.NoError(t, c.validate())
	text, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	for what, bound := range map[string]string{
		"connections at the job port; more wait to be accepted":         fmt.Sprintf("%d,%03d", server.conns/1000, server.conns%1000),
		"jobs at one time on an HTTP/2 connection":                      strconv.Itoa(h.HTTP2.MaxConcurrentStreams),
		"head of a request; the time for it":                            fmt.Sprintf("%d KiB; %.0f s", h.MaxHeaderBytes>>10, h.ReadHeaderTimeout.Seconds()),
		"heads that have begun to arrive, together ([memory](#memory))": fmt.Sprintf("%d MiB", DefaultServer().Heads>>20),
		"connection of a submitter without a job":                       fmt.Sprintf("%.0f min", h.IdleTimeout.Minutes()),
		"silence while a body is sent, in sum beyond 256 bytes/s":       fmt.Sprintf("%.0f s", c.BodyIdle.Seconds()),
		"time that a submitter takes no byte of a response":             fmt.Sprintf("%.0f min", c.WriteIdle.Minutes()),
		"idle connections to one upstream; for how long":                fmt.Sprintf("%d; %.0f s", c.IdleConns, c.IdleConnTimeout.Seconds()),
		"head of a response; interim responses":                         fmt.Sprintf("%d KiB; 32", c.MaxAnswerHeader>>10),
		"silence within a response":                                     fmt.Sprintf("%.0f h; a peer that is gone is found out in about a minute", c.Settings.Idle.Hours()),
	} {
		row := "| " + what + " | " + bound + " |"
		assert.Contains(t, string(text), row)
	}
}

// The memory of a body that may still be on its way is not given to another job.
func TestABodyThatMayBeOnItsWayKeepsItsMemory(t *testing.T) {
	budget := intake.NewBudget(1 << 20)
	take := func() *intake.Body {
		body, err := intake.ReadBody(strings.NewReader("{}"), 2, 2, budget)
		require.NoError(t, err)
		return body
	}
	for range 100 {
		a := &attempt{x: &exchange{body: take()}}
		a.setBody()
		a.request.Trailer = http.Header{"End": nil}
		sent := a.request.Whole
		a.releaseBody()
		next := take()
		require.NotSame(t, &sent[0], &next.Bytes()[0])
		next.Recycle()
	}
}
