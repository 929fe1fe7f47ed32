//go:build mesh

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
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

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/program"
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
			m.servers[drained].Signal(syscall.SIGTERM)
			s.more(t, 100)
			assert.Equal(t, "right", half.rest().ending())
			require.NoError(t, m.servers[drained].Wait(), program.Tail(m.serverLog(drained)))
			s.more(t, 100)
			m.serve(drained)

			left := s.begin(t, bigProject+2)
			left.leave()
			assert.Equal(t, "cut", left.rest().ending())
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
// and no job fails. Where it fails closed, Envoy responds with 500 at once. It always
// fails closed for a body that it shows in pieces, which it does not keep.
func TestMeshWithoutPilotfish(t *testing.T) {
	drain, kill := (*program.Daemon).Drain, (*program.Daemon).Kill
	for name, c := range map[string]struct {
		mode  proxyMode
		end   func(*program.Daemon)
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
			open := c.allow && c.mode != duplexMode
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

// meshOver is newMesh with four upstreams that h serves. asks is the sidecar's address for Envoy.
func meshOver(t *testing.T, h http.HandlerFunc, mode proxyMode, asks string, change func(string) string) *mesh {
	t.Helper()
	var upstreams []string
	for range 4 {
		upstreams = append(upstreams, handling(t, h))
	}
	return newMeshOver(&cluster{t: t, dir: t.TempDir()}, upstreams, mode, asks, change)
}

// post posts a body through Envoy.
func (m *mesh) post(body string) reply {
	m.t.Helper()
	return call(m.t, http.MethodPost, "http://"+m.jobs+"/", body)
}

// logged ends the sidecar and returns its log.
func (m *mesh) logged() string {
	m.t.Helper()
	m.beside.Drain()
	text, err := os.ReadFile(m.beside.Log)
	require.NoError(m.t, err)
	return string(text)
}

// TestMeshBodiesAreUnchanged: the upstream receives the body byte for byte as it was sent; one
// of the modes uses a Unix socket.
func TestMeshBodiesAreUnchanged(t *testing.T) {
	for _, mode := range []proxyMode{bufferedMode, partialMode, duplexMode} {
		t.Run(string(mode), func(t *testing.T) {
			asks := freeAddresses(t, 1)[0]
			if mode == duplexMode {
				asks = "unix:" + filepath.Join(t.TempDir(), "mesh.sock")
			}
			m := meshOver(t, func(w http.ResponseWriter, r *http.Request) {
				hash := sha256.New()
				n, err := io.Copy(hash, r.Body)
				fmt.Fprintf(w, "%d %x %v", n, hash.Sum(nil), err)
			}, mode, asks, asShipped)
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
		})
	}
}

// TestMeshReadsTheFirstBytes: with BUFFERED_PARTIAL, pilotfish receives no more of a long body than Envoy's buffer limit, and
// the upstream all of it.
func TestMeshReadsTheFirstBytes(t *testing.T) {
	m := meshOver(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %v", n, err)
	}, partialMode, freeAddresses(t, 1)[0], firstBytes)
	const jobs = 10
	body := `{"project_id":"first","filling":"` + strings.Repeat("x", 200_000) + `"}`
	for range jobs {
		require.Equal(t, fmt.Sprintf("%d <nil>", len(body)), m.post(body).text)
	}
	var sent int
	_, err := fmt.Sscanf(m.statistics("^cluster.pilotfish.upstream_cx_tx_bytes_total$"), "cluster.pilotfish.upstream_cx_tx_bytes_total: %d", &sent)
	require.NoError(t, err)
	assert.Less(t, sent/jobs, 64<<10, "bytes to pilotfish for each job")
	assert.Equal(t, jobs, strings.Count(m.logged(), `"project":"first"`))
}

// firstBytes makes Envoy keep only the first bytes of a body for pilotfish, as docs/mesh.md describes.
func firstBytes(config string) string {
	config = strings.Replace(config, "per_connection_buffer_limit_bytes: 67108864", "per_connection_buffer_limit_bytes: 16384", 1)
	before, rest, _ := strings.Cut(config, "          # Envoy retries only requests that it has buffered.\n")
	_, after, _ := strings.Cut(rest, "max_request_bytes: 67108864\n")
	return before + after
}

// TestMeshEnvoysOwnResponses: a response that Envoy sends because no upstream does is no upstream's.
func TestMeshEnvoysOwnResponses(t *testing.T) {
	var upstreams []string
	var servers []*httptest.Server
	for range 4 {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		upstreams, servers = append(upstreams, server.Listener.Addr().String()), append(servers, server)
	}
	m := newMeshOver(&cluster{t: t, dir: t.TempDir()}, upstreams, bufferedMode, freeAddresses(t, 1)[0], asShipped)
	require.Equal(t, http.StatusOK, m.post(`{"project_id":7}`).status)
	for _, server := range servers {
		server.Close()
	}
	assert.Equal(t, http.StatusServiceUnavailable, m.post(`{"project_id":7}`).status)
	log := m.logged()
	assert.Contains(t, log, `"status":503`)
	assert.Contains(t, log, "Envoy responded itself: status 503")
}

// TestMeshReadsLoadReports: pilotfish requests load reports through Envoy, and reads them in
// the header and the trailer of responses, from servers without metrics.
func TestMeshReadsLoadReports(t *testing.T) {
	const asks, report, load = "Endpoint-Load-Metrics-Format", "Endpoint-Load-Metrics", "TEXT named_metrics.running=7, named_metrics.stalled=2"
	for _, mode := range []proxyMode{bufferedMode, duplexMode} {
		for name, prefix := range map[string]string{"header": "", "trailer": http.TrailerPrefix} {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				m := meshOver(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get(asks) != "text" {
						http.NotFound(w, r)
						return
					}
					w.Header().Set(prefix+report, load)
					_, _ = io.WriteString(w, "done")
					_ = http.NewResponseController(w).Flush() // a trailer needs chunks
				}, mode, freeAddresses(t, 1)[0], withTrailers)
				m.beside.Drain()
				text, err := os.ReadFile(m.config)
				require.NoError(t, err)
				text = bytes.Replace(text, []byte("interval: 1s}"), []byte("interval: 1s, orca: true}"), 1)
				require.NoError(t, os.WriteFile(m.config, text, 0o600))
				m.restart()
				m.eligible(4, 4)
				m.sidecar.until("the load is known", func(by map[string]pool.State) bool {
					m.post(`{"project_id":7}`)
					for _, u := range by {
						if u.Running == 7 && u.Stalled == 2 {
							return true
						}
					}
					return false
				})
			})
		}
	}
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
