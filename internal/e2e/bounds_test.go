//go:build soak

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// besides is the memory of a sidecar in addition to its budget.
const besides = 256 << 20

// bounded returns the command of a sidecar with one upstream.
func bounded(t *testing.T, config string, upstream http.HandlerFunc) *exec.Cmd {
	t.Helper()
	return serving(options(t, "log: {jobs: none}\nreports: {interval: 1h}\n"+config, handling(t, upstream))...)
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
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
	s := launch(t, bounded(t, "job: {max_body: 1MiB, budget: 16MiB}\n", swallow), nil)
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

// 2,000 HTTP/2 connections that each send 25 KB of a head without an end. A head is decoded as
// it arrives; a connection has one at a time, of 32 KiB at most.
func TestSoakBoundsHeadsOfHTTP2(t *testing.T) {
	s := launch(t, bounded(t, "job: {max_body: 1MiB, budget: 16MiB}\n", swallow), nil)
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

// 1,500 jobs of 1 MB, 300 at a time, in a container with little memory: with the defaults in
// 128 MiB, and with the limit in deploy/kubernetes.
func TestSoakBoundsASmallMachine(t *testing.T) {
	body := `{"project_id": 1, "filling": "` + strings.Repeat("x", 1_000_000) + `"}`
	for _, limit := range []int64{128 << 20, 512 << 20} {
		t.Run(fmt.Sprint(limit>>20, " MiB"), func(t *testing.T) {
			s := boundedBy(t, limit)
			client := &http.Client{Transport: &http.Transport{IdleConnTimeout: idle}}
			defer client.CloseIdleConnections()
			var served, refused atomic.Int64
			var all sync.WaitGroup
			for range 300 {
				all.Go(func() {
					for range 5 {
						switch r := callBy(t, client, http.MethodPost, "http://"+s.jobs+"/v1/jobs", body); r.status {
						case http.StatusOK:
							served.Add(1)
						case http.StatusServiceUnavailable:
							refused.Add(1)
							assert.NotEmpty(t, r.header.Get("Retry-After"))
						}
					}
				})
			}
			all.Wait()
			assert.EqualValues(t, 1500, served.Load()+refused.Load())
			assert.Greater(t, served.Load(), int64(1000))
			t.Logf("%d served, %d MiB resident at most", served.Load(), s.resident("VmHWM")>>20)
		})
	}
}

// boundedBy is bounded in a separate cgroup. If the test cannot create one, the limit is set
// but the kernel does not enforce it.
func boundedBy(t *testing.T, limit int64) *sidecar {
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
	cmd := bounded(t, "", swallow)
	if err != nil {
		t.Logf("without a cgroup: %v", err)
		cmd.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", limit/10*9))
		s := launch(t, cmd, nil)
		t.Cleanup(func() { assert.Less(t, s.resident("VmHWM"), limit) })
		return s
	}
	inside := exec.Command("sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, group + "/cgroup.procs"}, cmd.Args...)...)
	return launch(t, inside, nil)
}
