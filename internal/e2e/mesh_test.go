//go:build mesh

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMeshLosesNoJob: 50 jobs a second are sent through Envoy while servers are killed, drained
// and restarted, and submitters disconnect. Every job gets one response, which is correct
// unless its server was killed before the end, and one consistent line in the sidecar's log.
func TestMeshLosesNoJob(t *testing.T) {
	for _, mode := range []proxyMode{bufferedMode, duplexMode} {
		t.Run(string(mode), func(t *testing.T) {
			m := newMesh(t, mode, frugal(mode), "--cores=16", "--cost=fetch=50ms,output=20ms", "--grace=5m")
			l := newLedger()
			s := newSubmitters(t, m.jobs, l, 4)
			stop := s.pace(20 * time.Millisecond)
			defer stop()
			s.more(t, 100)

			half := s.begin(t, bigProject)
			killed := half.upstream
			kill := m.kill(killed)
			assert.Equal(t, "cut", half.rest().ending())
			s.more(t, 100)
			m.serve(killed)

			half = s.begin(t, bigProject+1)
			drained := half.upstream
			m.servers[drained].signal(syscall.SIGTERM)
			s.more(t, 100)
			assert.Equal(t, "right", half.rest().ending())
			require.NoError(t, m.servers[drained].cmd.Wait(), tail(m.serverLog(drained)))
			s.more(t, 100)
			m.serve(drained)

			left := s.begin(t, bigProject+2)
			left.leave()
			assert.Equal(t, "cut", left.rest().ending())
			m.large(s)
			m.eligible(4, 4)
			back := time.Now()
			for _, a := range m.upstreams {
				require.Eventually(t, func() bool { return l.served(a, back) }, 2*patience, 10*tick, "%s is not used", a)
			}

			stop()
			m.balance(l)
			figures := m.statistics("upstreams.*retry|ext_proc.*(fail|timeout|spurious)")
			m.end()
			m.read(l)
			fmt.Printf("== ledger, %s: killed %s, drained %s\n%v", mode, killed, drained, l)
			assert.Empty(t, l.audit(killed), "%s", figures)
			assert.Equal(t, len(l.answers), l.count("right")+l.count("cut"), "no job is lost")
			assert.Equal(t, []string{left.session}, l.cutBesides(kill))
		})
	}
}

// TestMeshLosesNoLoadedUpstream: the killed server has more jobs than the others could get if
// Envoy's retry budget were a fifth of all jobs. All are retried elsewhere.
func TestMeshLosesNoLoadedUpstream(t *testing.T) {
	m := newMesh(t, bufferedMode, asShipped, "--cores=4", "--cost=fetch=1ms,output=1s")
	l := newLedger()
	s := newSubmitters(t, m.jobs, l, 1)
	var all sync.WaitGroup
	loaded, jobs := "", 0.0
	for sent := int64(0); jobs < 65; { // not more than needed, or they would reach their timeouts
		for ; sent-s.ended.Load() < 4*80; sent++ {
			all.Go(s.small)
		}
		scraped, err := m.sidecar.scrape()
		require.NoError(t, err)
		for _, a := range m.upstreams {
			if n := scraped.sum("pilotfish_upstream_in_flight", "upstream", a); n > jobs {
				loaded, jobs = a, n
			}
		}
	}
	kill := m.kill(loaded)
	all.Wait()
	m.serve(loaded)
	m.balance(l)
	figures := m.statistics("upstreams.*retry")
	m.end()
	m.read(l)
	fmt.Printf("== ledger, killed %s with %v jobs\n%v", loaded, jobs, l)
	assert.Empty(t, l.audit(loaded), "%s", figures)
	assert.Equal(t, len(l.answers), l.count("right")+l.count("cut"), "no job is lost")
	assert.Empty(t, l.cutBesides(kill))
}

// frugal limits Envoy's buffers to less than a big response, so that its server cannot send all
// of it before it is read. A buffered body must fit, and with pieces 16 MiB are in transit to
// pilotfish and back.
func frugal(mode proxyMode) func(string) string {
	limit := map[proxyMode]int{bufferedMode: 10 << 20, duplexMode: 1 << 20}[mode]
	return func(config string) string {
		return strings.Replace(config, "per_connection_buffer_limit_bytes: 67108864", fmt.Sprintf("per_connection_buffer_limit_bytes: %d", limit), 1)
	}
}

// TestMeshWithoutPilotfish: pilotfish is away for a while, by SIGTERM or by
// SIGKILL. If Envoy's filter fails open, the fall-back policy chooses in the meantime,
// and no job fails. Where it fails closed, Envoy answers 500 at once. It always
// fails closed for a body that it shows in pieces, which it does not keep.
func TestMeshWithoutPilotfish(t *testing.T) {
	drain, kill := (*daemon).drain, (*daemon).kill
	for name, c := range map[string]struct {
		mode  proxyMode
		end   func(*daemon)
		allow bool
	}{
		"drained, open":      {bufferedMode, drain, true},
		"drained, closed":    {bufferedMode, drain, false},
		"killed, open":       {bufferedMode, kill, true},
		"drained, in pieces": {duplexMode, drain, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t, c.mode, func(config string) string {
				return strings.Replace(config, "failure_mode_allow: true", fmt.Sprintf("failure_mode_allow: %t", c.allow), 1)
			}, "--cores=16", "--cost=fetch=50ms,output=20ms")
			l := newLedger()
			s := newSubmitters(t, m.jobs, l, 4)
			stop := s.pace(20 * time.Millisecond)
			defer stop()
			s.more(t, 100)
			before := m.written(l) // a killed process does not write its last lines
			c.end(m.beside)
			s.more(t, 100)
			m.restart()
			m.eligible(4, 4)
			require.Eventually(t, func() bool { return m.sidecar.metric("pilotfish_jobs_total") > 0 }, 2*patience, 10*tick, "Envoy does not ask")
			back := time.Now()
			s.more(t, 100)
			stop()
			m.end()
			m.read(l)
			fmt.Printf("== ledger, %s:\n%v", name, l)
			open := c.allow && c.mode == bufferedMode
			for session, a := range l.answers {
				lines, during := len(l.passed[session]), !slices.Contains(before, session) && a.sent.Before(back)
				assert.LessOrEqual(t, lines, 1, session)
				assert.True(t, lines == 1 || during, "%s: without a line, though pilotfish was there: %+v", session, a)
				assert.True(t, a.ending() == "right" || during && !open, "%s: %s, %d: %+v", session, a.ending(), a.status, l.passed[session])
			}
			assert.Equal(t, open, l.count("refused") == 0)
		})
	}
}

// large posts jobs of 8 MB whose members are at their ends, by length and in chunks.
func (m *mesh) large(s *submitters) {
	m.t.Helper()
	const size = 8 << 20
	for _, chunked := range []bool{false, true} {
		n := s.number.Add(1)
		session, project := fmt.Sprintf("job-%d", n), 7
		head, rest, _ := strings.Cut(job(session, project, "high", ""), "{")
		body := head + `{"filling": "` + strings.Repeat("x", size) + `", ` + rest
		r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
		require.NoError(m.t, err)
		if chunked {
			r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(body))
		}
		r.Header.Set("Accept", "text/csv")
		a := answer{sent: time.Now()}
		response, err := s.clients[0].RoundTrip(r)
		require.NoError(m.t, err)
		a.status, a.upstream = response.StatusCode, response.Header.Get("Pilotfish-Upstream")
		a = s.finish(session, response, project, a)
		require.Equal(m.t, "right", a.ending(), "%d", a.status)
	}
}

// TestMeshBodiesAreUnchanged: the upstream receives the body byte for byte as it was sent; one
// of the modes uses a Unix socket.
func TestMeshBodiesAreUnchanged(t *testing.T) {
	var upstreams []string
	for range 4 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hash := sha256.New()
			n, err := io.Copy(hash, r.Body)
			fmt.Fprintf(w, "%d %x %v", n, hash.Sum(nil), err)
		}))
		t.Cleanup(server.Close)
		upstreams = append(upstreams, server.Listener.Addr().String())
	}
	for _, mode := range []proxyMode{bufferedMode, duplexMode} {
		t.Run(string(mode), func(t *testing.T) {
			asks := freeAddresses(t, 1)[0]
			if mode == duplexMode {
				asks = "unix:" + filepath.Join(t.TempDir(), "mesh.sock")
			}
			m := newMeshOver(&cluster{t: t, dir: t.TempDir()}, upstreams, mode, asks, asShipped)
			for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 8 << 20} {
				body := make([]byte, size)
				_, _ = rand.Read(body)
				for _, declared := range []int64{int64(size), -1} {
					r, err := http.NewRequest(http.MethodPost, "http://"+m.jobs+"/", io.NopCloser(bytes.NewReader(body)))
					require.NoError(t, err)
					r.ContentLength = declared
					r.Header.Set("Content-Type", "application/octet-stream")
					res, err := http.DefaultClient.Do(r)
					require.NoError(t, err)
					text, err := io.ReadAll(res.Body)
					require.NoError(t, err)
					_ = res.Body.Close()
					assert.Equal(t, fmt.Sprintf("%d %x <nil>", size, sha256.Sum256(body)), string(text))
				}
			}
			m.beside.drain()
		})
	}
}

// TestMeshReadsLoadReports: pilotfish requests load reports through Envoy, and reads them in
// the header and the trailer of responses, from servers without metrics.
func TestMeshReadsLoadReports(t *testing.T) {
	const asks, report = "Endpoint-Load-Metrics-Format", "Endpoint-Load-Metrics"
	for _, mode := range []proxyMode{bufferedMode, duplexMode} {
		for name, trailer := range map[string]bool{"header": false, "trailer": true} {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				var upstreams []string
				for range 4 {
					server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						switch {
						case r.Header.Get(asks) != "text":
							http.NotFound(w, r)
							return
						case trailer:
							w.Header().Set("Trailer", report)
						default:
							w.Header().Set(report, "TEXT named_metrics.running=7, named_metrics.stalled=2")
						}
						_, _ = io.WriteString(w, "done")
						if trailer {
							w.Header().Set(report, "TEXT named_metrics.running=7, named_metrics.stalled=2")
						}
					}))
					t.Cleanup(server.Close)
					upstreams = append(upstreams, server.Listener.Addr().String())
				}
				m := newMeshOver(&cluster{t: t, dir: t.TempDir()}, upstreams, mode, freeAddresses(t, 1)[0], withTrailers)
				m.beside.drain()
				text, err := os.ReadFile(m.config)
				require.NoError(t, err)
				text = bytes.Replace(text, []byte("interval: 1s}"), []byte("interval: 1s, orca: true}"), 1)
				require.NoError(t, os.WriteFile(m.config, text, 0o600))
				m.restart()
				m.eligible(4, 4)
				require.Eventually(t, func() bool { return m.hears(7, 2) }, patience, 10*tick, "the load is not known")
				m.beside.drain()
			})
		}
	}
}

// hears sends a job, and reports whether the sidecar has an upstream with this load.
func (m *mesh) hears(running, stalled float64) bool {
	res, err := http.Post("http://"+m.jobs+"/", "application/json", strings.NewReader(`{"project_id":7}`))
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if res, err = http.Get("http://" + m.sidecar.admin + "/api/upstreams"); err != nil {
		return false
	}
	defer res.Body.Close()
	var all struct {
		Upstreams []struct{ Running, Stalled float64 }
	}
	if json.NewDecoder(res.Body).Decode(&all) != nil {
		return false
	}
	for _, u := range all.Upstreams {
		if u.Running == running && u.Stalled == stalled {
			return true
		}
	}
	return false
}

// withTrailers makes Envoy forward the trailers of HTTP/1.1, which it drops otherwise.
func withTrailers(config string) string {
	return strings.Replace(config, "  - name: upstreams\n    type: STATIC\n", `  - name: upstreams
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http_protocol_options: {enable_trailers: true}}
`, 1)
}
