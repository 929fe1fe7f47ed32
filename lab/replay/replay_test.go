package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an upstream, and returns its URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// replayed replays jobs to targets and returns the results by line.
func replayed(t *testing.T, ctx context.Context, jobs []trace.Job, carry http.RoundTripper, targets ...string) (map[trace.Line]Result, error) {
	t.Helper()
	results := map[trace.Line]Result{}
	ended, err := Run(ctx, Config{Jobs: jobs, Targets: targets, Transport: carry})
	for _, r := range ended {
		results[r.Line] = r
	}
	return results, err
}

// The reference server's execution times are the costs in the jobs.
func TestAgainstTheReferenceServer(t *testing.T) {
	var mu sync.Mutex
	executions := map[string]time.Duration{}
	settings := ruleserver.Defaults()
	settings.TrustCost, settings.Cores = true, 8
	server, err := ruleserver.New(ruleserver.Config{
		Settings: settings,
		Feeds:    fstest.MapFS{"1.csv": {Data: []byte("id\nx\n")}, "2.csv": {Data: []byte("id\nx\n")}},
		OnJob: func(r ruleserver.Record) {
			mu.Lock()
			defer mu.Unlock()
			executions[r.Session] = r.Facts.Execution
		},
	})
	require.NoError(t, err)
	t.Cleanup(server.Close)

	job := trace.Job{Project: "1", Load: 0.05, SharedRules: 0.04, Shared: "s1", Operators: 0.03, Output: 0.02,
		Timeouts: trace.Timeouts{Queue: 600, Evaluate: 600, Stream: 600}}
	prefetch := trace.Job{Project: "2", Prefetch: true, Load: 0.05, Priority: selection.High}
	after, of2 := job, job
	after.After = 2
	of2.Project, of2.After = "2", 1
	results, err := replayed(t, t.Context(), []trace.Job{prefetch, job, after, of2}, nil, serve(t, server.Handler()))
	require.NoError(t, err)
	require.Len(t, results, 4)
	for line, r := range results {
		require.True(t, r.OK(), "line %d: status %d, %v", line, r.Status, r.Err)
	}
	// A sleep is never shorter than requested.
	assert.GreaterOrEqual(t, executions["1"], 50*time.Millisecond)
	assert.GreaterOrEqual(t, executions["2"], 140*time.Millisecond)
	assert.GreaterOrEqual(t, results[2].LastByte, 0.14)
	fetches := map[trace.Line]bool{}
	for line, r := range results {
		hint, _ := report.Default().Hint(r.Header, time.Now())
		fetches[line] = hint.Fetched > 0
	}
	assert.Equal(t, map[trace.Line]bool{1: true, 2: true, 3: false, 4: false}, fetches)
}

// A dependent job is due, and is sent, when the job that it depends on has ended.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		results, err := replayed(t, t.Context(), []trace.Job{{}, {}, {After: 1}}, transport(func(*http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
		}), "http://localhost")
		require.NoError(t, err)
		assert.Equal(t, 4*time.Second, time.Since(begin), "two jobs at once, and then the third")
		require.Len(t, results, 3)
		for line, r := range results {
			assert.Zero(t, r.Late, "line %d", line)
			assert.Equal(t, 2.0, r.LastByte, "line %d", line)
		}
	})
}

func TestSubmittersHaveTheirTargets(t *testing.T) {
	named := func(name string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Pilotfish-Upstream", name)
		}))
	}
	targets := []string{named("a:1"), named("b:1")}
	results, err := replayed(t, t.Context(), []trace.Job{{Submitter: 0}, {Submitter: 5}, {Submitter: 2}}, nil, targets...)
	require.NoError(t, err)
	assert.Equal(t, "a:1", results[1].Header.Get("Pilotfish-Upstream"))
	assert.Equal(t, "b:1", results[2].Header.Get("Pilotfish-Upstream"))
	assert.Equal(t, "a:1", results[3].Header.Get("Pilotfish-Upstream"))
}

func TestEndings(t *testing.T) {
	for want, h := range map[string]http.HandlerFunc{
		"<nil>":          func(http.ResponseWriter, *http.Request) {},
		"unexpected EOF": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "10") },
		"EOF":            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		results, err := replayed(t, t.Context(), []trace.Job{{Project: "1"}}, nil, serve(t, h))
		require.NoError(t, err)
		r := results[1]
		assert.Equal(t, want, fmt.Sprint(r.Err))
		assert.Equal(t, want == "<nil>", r.OK(), want)
	}
	results, err := replayed(t, t.Context(), []trace.Job{{}}, nil, serve(t, http.NotFoundHandler()))
	require.NoError(t, err)
	one := results[1]
	assert.False(t, one.OK(), "status %d", one.Status)
}

// transport is an http.RoundTripper made of a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// At the limit, jobs that are not due yet are not sent, and jobs that have not ended are aborted.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := []trace.Job{{Project: "1"}, {Project: "1", After: 1}, {Project: "1", Offset: 1e6}}
		hangs := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		results, err := replayed(t, t.Context(), jobs, hangs, "http://localhost")
		require.EqualError(t, err, "replay: not finished after 1h0m0s")
		require.Len(t, results, 2)
		for _, r := range results {
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err := replayed(t, ctx, []trace.Job{{Offset: 1}}, nil, "http://localhost")
	assert.Equal(t, stopped, err)
}

// The texts of prompts share exactly the prefixes in the trace, and have its lengths.
func TestPromptsShareTheirBeginnings(t *testing.T) {
	jobs, err := trace.Prompts("../../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	blocks, texts, shared := map[int64]bool{}, map[string]bool{}, 0
	for i, j := range jobs[:150] {
		path, body := content(1, &j)
		require.Equal(t, "/v1/chat/completions", path)
		require.Equal(t, true, body["stream"])
		text := body["messages"].([]object)[0]["content"].(string)
		require.Len(t, text, int(j.Read)*tokenBytes)
		for n, block := range j.Blocks[:j.Read/trace.BlockTokens] {
			prefix := text[:(n+1)*trace.BlockTokens*tokenBytes]
			require.Equal(t, blocks[block], texts[prefix], "block %d of request %d was sent before", n, i)
			if blocks[block] {
				shared++
			}
			blocks[block], texts[prefix] = true, true
		}
	}
	assert.Positive(t, shared)
}
