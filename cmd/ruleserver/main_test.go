package main

import (
	"bufio"
	"bytes"
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
	"example.org/pilotfish/pkg/fakeupstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const examples = "../../internal/ruleserver/example/feeds"

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
		if response, err := http.Post(s.url+"/v1/jobs", "application/json", strings.NewReader(fakeupstream.ExampleJob())); err == nil {
			response.Body.Close()
		}
	})
	until(t, s.url+"/metrics", `ruleserver_jobs_running{priority="high"} 1`)
	return running.Wait
}

// until polls a URL until the response contains a text.
func until(t *testing.T, url, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), text)
	}, 2*time.Minute, time.Millisecond, text)
}

// TestUsage: each mistake on the command line is named, with its flag.
func TestUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	feeds := "--feeds=" + examples
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
		{[]string{feeds, "--lifetime=-1s"}, cli.Usage, "--lifetime: -1s must not be negative"},
		{[]string{feeds, "--overloaded=-1"}, cli.Usage, "--overloaded: -1 must be at least 0"},
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
