package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
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

// started is a ruleserver that runs in this process.
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

// TestDrain: after SIGTERM the job that is in ends well, a new one may go elsewhere,
// and the process ends with 0.
func TestDrain(t *testing.T) {
	feeds := t.TempDir()
	const bytes = 32 << 20 // more than sockets hold: the answer waits until it is read
	feed := "id\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", bytes>>10)
	require.NoError(t, os.WriteFile(feeds+"/12345.csv", []byte(feed), 0o600))
	s := start(t, feeds, "--grace=1h") // it may take long to answer so much
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

// A second signal ends the server at once, and so does the end of the grace time.
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

// runJob returns when a job runs. What it returns waits until the job was cut.
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

// until asks until the answer contains a text.
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
		time.Sleep(time.Millisecond) // the server has work to do
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
		{[]string{feeds, "--service=a/b"}, cli.Usage, `--service: "a/b" is not a name without / ? #`},
		{[]string{feeds, "--listen=127.0.0.1:0", "--consul=gopher://a"}, cli.Fault, "registration: Unknown protocol scheme: gopher"},
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
	assert.Contains(t, strings.Join(strings.Fields(stdout.String()), " "), "Largest feed that is read or computed. (default 256MiB)")
}

// scriptedConsul is an agent that says yes to everything, and writes it down:
// "+" for a server that takes jobs, "~" for one that drains, "-" for one that left.
type scriptedConsul struct {
	registered chan struct{} // gets each registration that takes jobs

	mu   sync.Mutex
	log  string
	last api.AgentServiceRegistration
}

func (c *scriptedConsul) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.URL.Path == "/v1/agent/service/register":
		var s api.AgentServiceRegistration
		if json.NewDecoder(r.Body).Decode(&s) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if s.Meta["draining"] == "false" {
			c.registered <- struct{}{}
		}
		c.last = s
		c.log += map[string]string{"false": "+", "true": "~"}[s.Meta["draining"]]
	case strings.HasPrefix(r.URL.Path, "/v1/agent/service/deregister/"):
		c.log += "-"
	case c.last.ID == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(api.AgentService{Service: c.last.Name, Address: c.last.Address, Port: c.last.Port, Meta: c.last.Meta})
	}
}

// wrote is what was written down, and the last registration.
func (c *scriptedConsul) wrote() (string, api.AgentServiceRegistration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log, c.last
}

// startRegistered starts a server that has registered.
func startRegistered(t *testing.T, args ...string) (started, *scriptedConsul) {
	c := &scriptedConsul{registered: make(chan struct{}, 10)}
	agent := httptest.NewServer(c)
	t.Cleanup(agent.Close)
	s := start(t, examples, append([]string{"--consul=" + agent.Listener.Addr().String(), "--service=rules", "--cores=3"}, args...)...)
	<-c.registered
	return s, c
}

func TestRegistersDrainsAndLeaves(t *testing.T) {
	s, c := startRegistered(t)
	_, first := c.wrote()
	assert.Equal(t, "rules", first.Name)
	assert.Equal(t, strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(first.ID, "rules-"))
	assert.Equal(t, "127.0.0.1", first.Address)
	assert.Equal(t, s.url+"/healthz", first.Check.HTTP)
	assert.Equal(t, "3", first.Meta["cores"])

	c.mu.Lock()
	c.last = api.AgentServiceRegistration{} // it forgets
	c.mu.Unlock()
	<-c.registered
	terminate(t)
	assert.Zero(t, <-s.exited)
	log, last := c.wrote()
	assert.Equal(t, "++~-", log, "what the agent knows is not registered again")
	assert.Equal(t, s.url+"/livez", last.Check.HTTP, "it is in the catalogue for as long as it is there")
}
