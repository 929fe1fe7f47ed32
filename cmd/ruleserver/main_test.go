package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testdata = "../../internal/ruleserver/example/"
	examples = testdata + "feeds"
)

// started is a ruleserver in this process.
type started struct {
	url    string
	exited chan int
	log    *os.File
}

func start(t *testing.T, feeds string, args ...string) started {
	t.Helper()
	reader, writer := io.Pipe()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	s := started{exited: make(chan int, 1), log: log}
	go func() {
		code := run(append([]string{"--listen=127.0.0.1:0", "--feeds=" + feeds}, args...), writer, s.log)
		writer.Close()
		s.exited <- code
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	s.url = regexp.MustCompile(`http://\S+`).FindString(line)
	require.NotEmpty(t, s.url, line)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

func terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
}

func post(t *testing.T, url string) (*http.Response, error) {
	body, err := os.Open(testdata + "job.json")
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs", body)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/csv")
	return http.DefaultClient.Do(r)
}

// TestDrain: after SIGTERM the open job is completed, a new one gets a response that permits a
// retry elsewhere, and the process ends with 0.
func TestDrain(t *testing.T) {
	feeds := t.TempDir()
	const bytes = 32 << 20 // more than socket buffers hold: the response is sent only as fast as it is read
	feed := "id\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", bytes>>10)
	require.NoError(t, os.WriteFile(feeds+"/12345.csv", []byte(feed), 0o600))
	s := start(t, feeds, "--grace=1h") // so large a response can take long
	first, err := http.Post(s.url+"/v1/jobs", "application/json", strings.NewReader(`{"project_id": 12345}`))
	require.NoError(t, err)
	defer first.Body.Close()

	terminate(t)
	until(t, s.url+"/healthz", "draining")
	second, err := post(t, s.url)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, second.StatusCode)
	assert.Equal(t, "no", second.Header.Get("Job-Started"))
	second.Body.Close()

	n, err := io.Copy(io.Discard, first.Body)
	require.NoError(t, err)
	assert.Greater(t, n, int64(bytes))
	assert.Zero(t, <-s.exited)
}

// A second signal or the end of the grace time ends the server at once.
func TestOpenJobsAreCut(t *testing.T) {
	for grace, why := range map[string]string{"1h": "second signal", "1ms": "jobs were still running at "} {
		s := start(t, examples, "--cost=output=1h", "--grace="+grace)
		cut := runJob(t, s)
		terminate(t)
		if grace == "1h" {
			until(t, s.url+"/healthz", "draining")
			terminate(t)
		}
		assert.Equal(t, cli.Fault, <-s.exited)
		cut()
		log, err := os.ReadFile(s.log.Name())
		require.NoError(t, err)
		assert.Contains(t, string(log), why)
	}
}

// runJob returns when a job runs. The returned function waits until the job was aborted.
func runJob(t *testing.T, s started) (cut func()) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		if response, err := post(t, s.url); err == nil {
			response.Body.Close()
		}
	})
	until(t, s.url+"/metrics", `ruleserver_jobs_running{priority="high"} 1`)
	return running.Wait
}

// until polls a URL until the response contains a text.
func until(t *testing.T, url, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err, "waiting for %q", text)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		require.NoError(t, err)
		if strings.Contains(string(body), text) {
			return
		}
		time.Sleep(time.Millisecond) // leave the server time to work
	}
}

// TestUsage: each mistake on the command line is named, with its flag.
func TestUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	feeds := "--feeds=" + testdata + "feeds"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.Usage, "missing flags: --feeds=DIR"},
		{[]string{"--feeds=nowhere"}, cli.Usage, "--feeds: stat"},
		{[]string{feeds, "--cost=fetch=2"}, cli.Usage, `--cost: cost: fetch: want a duration such as 2s or 400ms, got "2"`},
		{[]string{feeds, "--cache-bytes=1TB"}, cli.Usage, `--cache-bytes: "1TB" is not a size`},
		{[]string{feeds, "--log-level=loud"}, cli.Usage, `--log-level: slog: level string "loud": unknown name`},
		{[]string{feeds, "--grace=-1s"}, cli.Usage, "--grace: -1s must not be negative"},
		{[]string{feeds, "--cores=-1"}, cli.Usage, "--cores: -1 is not between 1 and 4096"},
		{[]string{feeds, "--listen=nonsense"}, cli.Fault, "--listen: listen tcp: address nonsense: missing port in address"},
		{[]string{feeds, "--listen=" + taken.Addr().String()}, cli.Fault, "--listen: listen tcp " + taken.Addr().String() + ": bind: address already in use"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, c.code, run(c.args, io.Discard, &stderr), "%q: %s", c.args, &stderr)
		assert.Contains(t, stderr.String(), c.want, "%q", c.args)
	}
	var stdout bytes.Buffer
	assert.Zero(t, run([]string{"--help"}, &stdout, io.Discard))
	assert.Contains(t, stdout.String(), "--cost=COST")
	assert.Contains(t, strings.Join(strings.Fields(stdout.String()), " "), "Maximum size of a feed or result. (default 256MiB)")
}
