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

// What a sidecar may have resident besides its budget for bodies: the reserve, which
// is as much again, at least 16 MiB and at most 128 MiB; submitters.heads; and the rest.
const headsPart, besides = 32 << 20, 256 << 20

// bounded starts a sidecar before one upstream.
func bounded(t *testing.T, upstream, config string) *sidecar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	text := "discovery:\n  static: [" + upstream + "]\nlog: {jobs: none}\nreports: {interval: 1h}\n" + config
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return launch(t, exec.Command(program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"))
}

// swallow reads a job and answers it.
func swallow(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "ok")
}

// resident is a figure of a process's memory, in bytes: VmRSS now, VmHWM at most.
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

// given waits until the memory of a burst was given back to the system.
func (s *sidecar) given() {
	s.t.Helper()
	most := s.resident("VmHWM")
	assert.Eventually(s.t, func() bool { return s.resident("VmRSS") < 150<<20 }, time.Minute, 100*tick, "the memory is not given back")
	s.t.Logf("%d MiB resident at most, %d MiB afterwards", most>>20, s.resident("VmRSS")>>20)
}

// 48 HTTP/2 connections with 250 jobs each, of which a few bytes come and no more.
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
					if response.StatusCode != http.StatusRequestTimeout { // that it came too slowly is true
						assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
						assert.NotEmpty(t, response.Header.Get("Retry-After"))
					}
					_ = response.Body.Close()
				}
			})
		}
	}
	const budget, reserve = 16 << 20, 16 << 20
	require.Eventually(t, func() bool { return s.metric("pilotfish_shed_total", "reason", "no_room") > 1000 }, 2*patience, 10*tick)
	held := s.metric("pilotfish_body_bytes")
	assert.LessOrEqual(t, held, float64(budget+reserve))
	t.Logf("%.1f MiB of bodies, %d MiB resident", held/(1<<20), s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(budget+reserve+headsPart+besides))
	cancel()
	all.Wait()
	s.given()
}

// 2,000 connections with heads that do not end.
func TestSoakBoundsHeads(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(swallow))
	defer upstream.Close()
	s := bounded(t, upstream.Listener.Addr().String(), "job: {max_body: 1MiB, budget: 16MiB}\nsubmitters: {max_head: 64KiB}\n")
	var long strings.Builder
	long.WriteString("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n")
	for i := 0; long.Len() < 60_000; i++ {
		fmt.Fprintf(&long, "X-%d: y\r\n", i)
	}
	const conns = 2000
	var all sync.WaitGroup
	for range conns {
		c, err := net.Dial("tcp", s.jobs)
		require.NoError(t, err)
		defer c.Close()
		all.Go(func() { _, _ = io.WriteString(c, long.String()) }) // it may be closed meanwhile
	}
	all.Wait()
	require.Eventually(t, func() bool { return s.metric("pilotfish_heads_refused_total") > conns*9/10 }, patience, 10*tick)
	assert.LessOrEqual(t, s.metric("pilotfish_head_bytes"), float64(headsPart))
	t.Logf("%d MiB resident", s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(16<<20+16<<20+headsPart+besides))
	response, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode, "heads of the usual length have room beside them")
}

// 2,000 HTTP/2 connections with heads that do not end, of 25 KB. A head is decoded as
// it comes; there is one at a time on a connection, of max_head at most.
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
	for i := range 5 { // more frames end the connection
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
	require.Eventually(t, func() bool { return s.metric("pilotfish_connections", "port", "jobs") == conns }, patience, 10*tick)
	t.Logf("%d MiB resident", s.resident("VmRSS")>>20)
	assert.Less(t, s.resident("VmHWM"), int64(16<<20+16<<20+headsPart+besides))
}

// burst posts so many jobs at once and counts the statuses.
func burst(t *testing.T, s *sidecar, jobs, bytes int) map[string]int {
	t.Helper()
	body := `{"project_id": 1, "filling": "` + strings.Repeat("x", bytes) + `"}`
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	var mu sync.Mutex
	ended := map[string]int{}
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
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
	ended := burst(t, s, 2000, 1_000_000)
	assert.Equal(t, 2000, ended["200"]+ended["503"])
	const budget, reserve = 1 << 30, 128 << 20
	assert.Less(t, s.resident("VmHWM"), int64(budget+reserve+headsPart+besides))
	s.given()
}

// 500 jobs at once before an upstream whose queue of connections has room for 8, and
// that serves 16 at a time.
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
			time.Sleep(50 * time.Millisecond) // the work
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
	assert.Equal(t, map[string]int{"200": 500}, burst(t, s, 500, 100))
}

// placed is a listener that accepts only when there is a place.
type placed struct {
	net.Listener
	places chan struct{}
}

func (p placed) Accept() (net.Conn, error) {
	p.places <- struct{}{}
	return p.Listener.Accept()
}
