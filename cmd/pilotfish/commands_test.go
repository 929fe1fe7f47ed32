package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/pkg/fakeupstream"
)

// runOn runs a command line and returns its output.
func runOn(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	good, bad, open, none := "good.yaml", "bad.yaml", "open.yaml", "none.yaml"
	const upstreams = "discovery: {static: [127.0.0.1:9001]}\n"
	require.NoError(t, os.WriteFile(good, []byte(upstreams), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte(upstreams+"reports: {interval: 5}\nqueue: {jobs: 0}\n"), 0o600))
	require.NoError(t, os.WriteFile(open, []byte(upstreams+"admin: 0.0.0.0:9180\n"), 0o600))
	require.NoError(t, os.WriteFile(none, []byte("listen: 1"), 0o600))
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{args: []string{good}, out: "good.yaml: ok\n"},
		{args: []string{bad}, code: 1, err: "bad.yaml:2:21: reports.interval: expected a duration with its unit, such as 500ms, 5s or 2m, found \"5\"\nbad.yaml:3:15: queue.jobs: 0 must be at least 1\n"},
		{args: []string{"--print", none}, code: 1, err: "none.yaml:1:1: discovery: 0 sources of upstreams are set: set exactly one of " + discovery.Kinds() + "\n" +
			"none.yaml:1:9: listen: \"1\" is not host:port; write 127.0.0.1:1\n"},
		{args: []string{open}, out: "open.yaml: ok\n", err: "open.yaml:2:8: warning: admin: 0.0.0.0:9180 is open to other machines, without authentication; 127.0.0.1 is for this machine only\n"},
		{args: nil, code: 2, err: "pilotfish: expected \"<file>\"; see pilotfish --help\n"},
		{args: []string{"absent.yaml"}, code: 1, err: "absent.yaml cannot be read: no such file or directory\n"},
	} {
		code, stdout, stderr := runOn(append([]string{"check"}, c.args...)...)
		assert.Equal(t, c.code, code, "%v", c.args)
		assert.Equal(t, c.out, stdout, "%v", c.args)
		assert.Equal(t, c.err, stderr, "%v", c.args)
	}
}

// check prints the complete configuration that it reads.
func TestCheckPrints(t *testing.T) {
	const text = "discovery: {static: [127.0.0.1:9001]}\nqueue: {wait: 3s}\nreports: {prometheus: \"http://127.0.0.1:9091\"}\n"
	check := func(text string) string {
		path := written(t, []byte(text))
		code, printed, stderr := runOn("check", "--print", path)
		require.Zero(t, code, stderr)
		return printed
	}
	printed := check(text)
	assert.Contains(t, printed, "queue:\n  jobs: 1000\n  wait: 3s\n")
	assert.Equal(t, printed, check(printed))
	assert.Contains(t, check("discovery: {static: [127.0.0.1:9001]}\nreports: none\n"), "\nreports: none\n")
}

// The help of serve states the defaults, but does not set them, because the file can have other
// values.
func TestHelpOfServeNamesDefaults(t *testing.T) {
	code, help, stderr := runOn("serve", "--help")
	require.Zero(t, code, stderr)
	oneLine := strings.Join(strings.Fields(help), " ")
	assert.Contains(t, oneLine, "for jobs, or unix:PATH; default "+config.Default().Listen+".")
	assert.Contains(t, oneLine, "of the admin port, or unix:PATH; default "+config.Default().Admin+".")
	code, help, stderr = runOn("--help")
	require.Zero(t, code, stderr)
	assert.Contains(t, help, "\n  serve      Run the sidecar.\n")
}

func TestFaultsOfFlagsOfServe(t *testing.T) {
	code, _, stderr := runOn("serve", "--upstream", "nowhere", "--upstream", "127.0.0.1:9001", "--listen", "x")
	assert.Equal(t, 1, code)
	assert.Equal(t, "pilotfish: --listen: \"x\" is not host:port; the port is missing: write x:PORT\npilotfish: --upstream: \"nowhere\" is not host:port; the port is missing: write nowhere:PORT\n", stderr)
}

// The demo prints every line of its transcript in README.md, except for addresses and times.
func TestTheDemoPrintsWhatReadmeShows(t *testing.T) {
	code, out, stderr := runOn("demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	require.Zero(t, code, stderr)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```\n1. A job of project")
	require.True(t, ok)
	shown, _, ok := strings.Cut("1. A job of project"+rest, "```\n")
	require.True(t, ok)
	masked := regexp.MustCompile(`\d+(\.\d+)? ?(ms|s)\b|127\.0\.0\.1:\d+`)
	printed := masked.ReplaceAllString(out, "X")
	for line := range strings.Lines(masked.ReplaceAllString(shown, "X")) {
		assert.Contains(t, printed, line)
	}
}

func TestATakenPortOfTheDemo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, flag := range []string{"--listen", "--admin"} {
		args := []string{"demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", flag, l.Addr().String()}
		code, _, stderr := runOn(args...)
		assert.Equal(t, 1, code)
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		assert.Equal(t, "pilotfish: cannot listen on 127.0.0.1:"+port+": bind: address already in use; choose another address with "+flag+
			". Port 0 is any free port: make demo DEMO=\"--listen 127.0.0.1:0 --admin 127.0.0.1:0\"\n", stderr)
	}
}

// A traced job has a span, with a child for each attempt. Its upstream receives the job's span in
// Traceparent.
func TestJobsAreTraced(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // in milliseconds: spans are exported at once
	spans := make(chan []*otlp.Span, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(text, &sent)) {
			spans <- sent.ResourceSpans[0].ScopeSpans[0].Spans
		}
	}))
	defer receiver.Close()
	upstream := fakeupstream.New(t, fakeupstream.Options{Handler: http.NotFoundHandler()})
	cfg := before(upstream.Address())
	cfg.Tracing.Endpoint, cfg.Tracing.Share = receiver.URL, 0
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.refusal() == nil }, patience, time.Millisecond)
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	post(t, p.Jobs, "localhost", "Traceparent", theirs)
	received := upstream.Jobs()[0].Header.Get("Traceparent")
	var both []*otlp.Span
	for len(both) < 2 {
		both = append(both, <-spans...)
	}
	attempt, job := both[0], both[1]
	assert.Equal(t, []string{"attempt", "job"}, []string{attempt.Name, job.Name})
	assert.Equal(t, job.SpanId, attempt.ParentSpanId)
	assert.Equal(t, fmt.Sprintf("00-%x-%x-01", job.TraceId, job.SpanId), received)
	assert.Equal(t, theirs, fmt.Sprintf("00-%x-%x-01", job.TraceId, job.ParentSpanId))
	assert.Empty(t, spans)
}

// A start is unplanned only if the process before it was killed. Without systemd that is unknown.
func TestPlannedStarts(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ ends, planned bool }{{true, true}, {false, true}, {true, false}, {true, true}} {
		var m marker
		planned, err := m.begin(dir + ":/elsewhere")
		require.NoError(t, err)
		assert.Equal(t, c.planned, *planned, "start %d", i)
		assert.FileExists(t, filepath.Join(dir, "running"))
		if c.ends {
			require.NoError(t, m.end())
		}
	}
	var m marker
	planned, err := m.begin("")
	assert.NoError(t, err)
	assert.Nil(t, planned)
	assert.NoError(t, m.end())
	_, err = m.begin(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
