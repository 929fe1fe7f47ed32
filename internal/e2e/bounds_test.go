//go:build soak

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// besides is the memory of a sidecar in addition to its budget.
const besides = 256 << 20

// bounded starts a sidecar with one upstream.
func bounded(t *testing.T, upstream, config string) *sidecar {
	t.Helper()
	return launch(t, serving(t, upstream, config))
}

// serving returns the command that starts such a sidecar.
func serving(t *testing.T, upstream, config string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	text := "discovery:\n  static: [" + upstream + "]\nlog: {jobs: none}\nreports: {interval: 1h}\n" + config
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return exec.Command(program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
}

// swallow reads a job and responds.
func swallow(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "ok")
}

// resident returns a figure of a process's memory, in bytes: VmRSS is the current value, VmHWM
// the maximum.
func (s *sidecar) resident(figure string) (bytes int64) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	require.NoError(s.t, err)
	_, value, found := strings.Cut(string(text), figure+":")
	require.True(s.t, found)
	_, err = fmt.Sscanf(value, "%d kB", &bytes)
	require.NoError(s.t, err)
	return bytes << 10
}

// given waits until the memory of a burst was returned to the system.
func (s *sidecar) given() {
	s.t.Helper()
	most := s.resident("VmHWM")
	assert.Eventually(s.t, func() bool { return s.resident("VmRSS") < 150<<20 }, 2*time.Minute, 100*tick, "the memory is not given back")
	s.t.Logf("%d MiB resident at most, %d MiB afterwards", most>>20, s.resident("VmRSS")>>20)
}

// 48 HTTP/2 connections with 250 jobs each. Each job sends a few bytes and then stops.
func TestSoakBoundsHalfSentBodies(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	s := bounded(t, upstream.Listener.Addr().String(), "job: {max_body: 1MiB, budget: 16MiB}\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const conns, jobs = 48, 250
	var all sync.WaitGroup
	for range conns {
		tr := &http.Transport{Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		for range jobs {
			all.Go(func() {
				body, more := io.Pipe()
				defer more.Close()
				go io.WriteString(more, `{"project_id": 1, "filling": "`) // it ends with the job
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.jobs+"/v1/jobs", body)
				if !assert.NoError(t, err) {
					return
				}
				r.ContentLength = 1_000_000
				if response, err := tr.RoundTrip(r); err == nil {
					if response.StatusCode != http.StatusRequestTimeout { // the job is refused as too slow
						assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
						assert.NotEmpty(t, response.Header.Get("Retry-After"))
					}
					_ = response.Body.Close()
				}
			})
		}
	}
	const budget = 16 << 20
	require.Eventually(t, func() bool { return s.metric("pilotfish_shed_total", "reason", "no_room") > 1000 }, 2*patience, 10*tick)
	held := s.metric("pilotfish_bound_used", "bound", "body_bytes")
	assert.LessOrEqual(t, held, float64(budget))
	t.Logf("%.1f MiB of bodies, %d MiB resident", held/(1<<20), s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(budget+besides))
	cancel()
	all.Wait()
	s.given()
}

// 1,000 connections that each send 35 KiB of short, different header lines without an end.
func TestSoakBoundsHeads(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	s := bounded(t, upstream.Listener.Addr().String(), "job: {max_body: 1MiB, budget: 16MiB}\n")
	var long strings.Builder
	long.WriteString("POST /v1/jobs HTTP/1.1\nHost:l\n")
	for i := int64(0); long.Len() < 35<<10; i++ {
		long.WriteString(strconv.FormatInt(i, 36) + ":\n")
	}
	const conns = 1000
	var all sync.WaitGroup
	for range conns {
		c, err := net.Dial("tcp", s.jobs)
		require.NoError(t, err)
		defer c.Close()
		all.Go(func() { _, _ = io.WriteString(c, long.String()) })
	}
	all.Wait()
	require.Eventually(t, func() bool { return s.metric("pilotfish_bound_used", "bound", "body_bytes") > 15<<20 }, patience, 10*tick)
	t.Logf("%d MiB resident", s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(100<<20))
	response, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

// 300 simultaneous responses with heads of many short lines, whose bodies stall. Heads of 35,000 lines are refused. Heads
// of 990 lines are forwarded, and count in the budget.
func TestSoakBoundsHeadsOfAnswers(t *testing.T) {
	for lines, status := range map[int]string{35_000: "502", 990: "200"} {
		var head strings.Builder
		head.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
		for i := range lines {
			fmt.Fprintf(&head, "%x:\n", i)
		}
		head.WriteString("\r\n")
		goOn := make(chan struct{})
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				defer c.Close()
				_, _ = io.WriteString(c, head.String())
				<-goOn
				_, _ = io.WriteString(c, "ok")
			}
		}))
		defer upstream.Close()
		s := bounded(t, upstream.Listener.Addr().String(), "job: {max_body: 1MiB, budget: 64MiB}\nretry: {attempts: 1}\n")
		const jobs = 300
		done := make(chan map[string]int)
		go func() { done <- burst(t, s, jobs, jobs, 100) }()
		if status == "200" {
			require.Eventually(t, func() bool { return s.metric("pilotfish_bound_used", "bound", "body_bytes") > jobs*990*128 }, patience, 10*tick)
		}
		close(goOn)
		for how, n := range <-done {
			assert.Equal(t, jobs, n)
			assert.True(t, strings.HasPrefix(how, status), how)
		}
		t.Logf("%d lines: %d MiB resident at most", lines, s.resident("VmHWM")>>20)
		assert.Less(t, s.resident("VmHWM"), int64(64<<20+besides))
	}
}

// 2,000 HTTP/2 connections that each send 25 KB of a head without an end. A head is decoded as
// it arrives; a connection has one at a time, of 32 KiB at most.
func TestSoakBoundsHeadsOfHTTP2(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	s := bounded(t, upstream.Listener.Addr().String(), "job: {max_body: 1MiB, budget: 16MiB}\n")
	const conns = 2000
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	var head bytes.Buffer
	encoder, f := hpack.NewEncoder(&head), http2.NewFramer(&sent, nil)
	require.NoError(t, f.WriteSettings())
	for i := range 5 { // more frames would close the connection
		head.Reset()
		for j := range 100 {
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d-%d", i, j), Value: "yyyyyyyyy", Sensitive: true}))
		}
		if i == 0 {
			require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes()}))
		} else {
			require.NoError(t, f.WriteContinuation(1, false, head.Bytes()))
		}
	}
	for range conns {
		c, err := net.Dial("tcp", s.jobs)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(sent.Bytes())
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.metric("pilotfish_bound_used", "bound", "jobs_connections") == conns }, patience, 10*tick)
	t.Logf("%d MiB resident", s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(16<<20+besides))
}

// burst posts jobs, at most together at a time, and counts the statuses of the responses.
func burst(t *testing.T, s *sidecar, jobs, together, bytes int) map[string]int {
	t.Helper()
	body := `{"project_id": 1, "filling": "` + strings.Repeat("x", bytes) + `"}`
	tr := &http.Transport{IdleConnTimeout: idle}
	defer tr.CloseIdleConnections()
	var mu sync.Mutex
	ended := map[string]int{}
	var all sync.WaitGroup
	places := make(chan struct{}, together)
	for range jobs {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			response, err := (&http.Client{Transport: tr}).Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(body))
			how := fmt.Sprint(err)
			if err == nil {
				text, _ := io.ReadAll(response.Body) // what came of it
				_ = response.Body.Close()
				if how = fmt.Sprint(response.StatusCode); how != "200" && how != "503" {
					how += ": " + string(text)
				}
			}
			if err == nil && response.StatusCode == http.StatusServiceUnavailable {
				assert.NotEmpty(t, response.Header.Get("Retry-After"))
			}
			mu.Lock()
			defer mu.Unlock()
			ended[how]++
		})
	}
	all.Wait()
	t.Log(ended)
	return ended
}

// 2,000 jobs of 1 MB at once.
func TestSoakBoundsBurst(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	s := bounded(t, upstream.Listener.Addr().String(), "")
	ended := burst(t, s, 2000, 2000, 1_000_000)
	assert.Equal(t, 2000, ended["200"]+ended["503"])
	const budget = 1 << 30
	assert.Less(t, s.resident("VmHWM"), int64(budget+besides))
	s.given()
}

// 1,500 jobs of 1 MB, 300 at a time, in a container with little memory: with the defaults in
// 128 MiB, and with the limit in deploy/kubernetes.
func TestSoakBoundsASmallMachine(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	for _, limit := range []int64{128 << 20, 512 << 20} {
		t.Run(fmt.Sprint(limit>>20, " MiB"), func(t *testing.T) {
			s := boundedBy(t, limit, upstream.Listener.Addr().String(), "")
			ended := burst(t, s, 1500, 300, 1_000_000)
			assert.Equal(t, 1500, ended["200"]+ended["503"])
			assert.Greater(t, ended["200"], 1000)
			t.Logf("%d MiB resident at most", s.resident("VmHWM")>>20)
		})
	}
}

// boundedBy is bounded in a separate cgroup. If the test cannot create one, the limit is set
// but the kernel does not enforce it.
func boundedBy(t *testing.T, limit int64, upstream, config string) *sidecar {
	t.Helper()
	const root = "/sys/fs/cgroup"
	group, file := root+"/pilotfish-test", "memory.max"
	if _, err := os.Stat(root + "/memory/memory.limit_in_bytes"); err == nil { // v1
		group, file = root+"/memory/pilotfish-test", "memory.limit_in_bytes"
	}
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, os.Remove(group)) })
		err = os.WriteFile(group+"/"+file, fmt.Append(nil, limit), 0o600)
	}
	cmd := serving(t, upstream, config)
	if err != nil {
		t.Logf("without a cgroup: %v", err)
		cmd.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", limit/10*9))
		s := launch(t, cmd)
		t.Cleanup(func() { assert.Less(t, s.resident("VmHWM"), limit) })
		return s
	}
	inside := exec.Command("sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, group + "/cgroup.procs"}, cmd.Args...)...)
	return launch(t, inside)
}

// 500 jobs at once for an upstream whose queue of connections holds 8, and that serves 16 at a
// time.
func TestSoakBoundsAFullQueueOfConnections(t *testing.T) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(socket, 8))
	file := os.NewFile(uintptr(socket), "socket")
	l, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	places := make(chan struct{}, 16)
	upstream := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(50 * time.Millisecond) // the job's duration
			swallow(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				<-places
			}
		},
	}
	upstream.SetKeepAlivesEnabled(false)
	go upstream.Serve(placed{l, places}) // until it is closed
	defer upstream.Close()
	s := bounded(t, l.Addr().String(), "queue: {wait: 5m}\n") // however slow the machine is
	assert.Equal(t, map[string]int{"200": 500}, burst(t, s, 500, 500, 100))
}

// placed is a listener that accepts a connection only when a place is free.
type placed struct {
	net.Listener
	places chan struct{}
}

func (p placed) Accept() (net.Conn, error) {
	p.places <- struct{}{}
	return p.Listener.Accept()
}
