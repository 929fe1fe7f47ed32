package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// Some frameworks serve the metrics at /metrics/ and redirect /metrics.
func TestPollFollowsARedirectWithinItsUpstream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			http.Redirect(w, r, "/metrics/", http.StatusTemporaryRedirect)
			return
		}
		assert.Equal(t, []string{"pilotfish", "gzip"}, []string{r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding")})
		assert.Regexp(t, `^application/openmetrics-text;version=1\.0\.0;.*,text/plain;version=0\.0\.4;q=0\.4,\*/\*;q=0\.3$`, r.Header.Get("Accept"))
		_, _ = io.WriteString(w, goodPage)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	r := newRecorded(t, patiently, func(c *Config) { c.CachePath = none })
	r.once(t, r.upstream(address).poll)
	require.Len(t, r.reports[address], 1)
	assert.Equal(t, byPriority(7, 2), r.reports[address][0].Stalled)
}

// TestPollNamesWhatIsBroken serves each broken response as the metrics and as
// the listing of an upstream.
func TestPollNamesWhatIsBroken(t *testing.T) {
	write := func(status int, encoding string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	const elsewhere = `status 307 Temporary Redirect, a redirect to "http://127.0.0.1:1/metrics/", which is not followed`
	const noHTTP = `net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH_9.7"`
	huge := func(encoding string, pack func([]byte) []byte) http.HandlerFunc {
		comments := pack(bytes.Repeat([]byte("# all is well"+strings.Repeat(".", 987)+"\n"), 1000))
		begin, strangers := pack([]byte(`{"strangers":[`)), pack(bytes.Repeat([]byte(`"`+strings.Repeat("x", 10_000)+`",`), 100))
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "text/plain")
			part := comments
			if r.URL.Path != "/metrics" {
				_, _ = w.Write(begin)
				part = strangers
			}
			for range 100 { // a megabyte each; gzip allows several members
				_, _ = w.Write(part)
			}
		}
	}
	for _, c := range []struct {
		name             string
		handler          http.HandlerFunc
		metrics, listing string
	}{
		{"a failure", write(500, "", []byte("sorry")), "status 500 Internal Server Error", "status 500 Internal Server Error"},
		{"a status of its own", write(299, "", nil), "status 299", "status 299"},
		{"unchanged, unasked", write(304, "", nil), "status 304 Not Modified", "status 304 Not Modified"},
		{"elsewhere", http.RedirectHandler("http://127.0.0.1:1/metrics/", http.StatusTemporaryRedirect).ServeHTTP, elsewhere, elsewhere},
		{"empty", write(200, "", nil), "metric ruleserver_stalled_joblets is missing, or NaN", "empty"},
		{"garbage", write(200, "", []byte("\x00\xff")), "metric ruleserver_stalled_joblets is missing, or NaN", `jsontext: invalid character '\x00' at start of value`},
		{"huge", huge("", func(b []byte) []byte { return b }), "longer than 4194304 bytes", "longer than 67108864 bytes"},
		{"huge when unpacked", huge("gzip", gzipped), "longer than 4194304 bytes", "longer than 67108864 bytes"},
		{"not gzip", write(200, "gzip", []byte("{}    plain text")), "gzip: invalid header", "gzip: invalid header"},
		{"gzip cut short", write(200, "gzip", gzipped([]byte(goodPage))[:50]), "truncated", "truncated"},
		{"gzip bent", write(200, "gzip", append(gzipped(nil), "more of the same"...)), "gzip: invalid header", "gzip: invalid header"},
		{"another encoding", write(200, "br", nil), `unexpected content encoding "br"`, `unexpected content encoding "br"`},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, " ")
		}, "truncated", "truncated"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.7\r\n")
				_ = conn.Close()
			}
		}, noHTTP, noHTTP},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 100_000))
		}, "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted", "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, r := upstream(t, c.handler, nil), newRecorded(t, patiently)
			r.once(t, r.upstream(address).poll)
			assert.Empty(t, r.reports)
			assert.Equal(t, map[string][]string{address: {"upstream " + address + ": metrics: " + c.metrics}}, r.silent)

			address = upstream(t, nil, c.handler)
			r.once(t, r.upstream(address).poll)
			if assert.Len(t, r.reports[address], 1, "the load is still known") {
				assert.Equal(t, byPriority(7, 2), r.reports[address][0].Stalled)
			}
			assert.Empty(t, r.listings)
			assert.Equal(t, map[string][]string{address: {"upstream " + address + ": cache listing: " + c.listing}}, r.failed)
		})
	}
}

func TestPollKeepsItsConnection(t *testing.T) {
	for name, listing := range map[string]http.HandlerFunc{
		"a listing": say(goodListing),
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped([]byte(goodListing)))
		},
		"no listing":   http.NotFound,
		"a small loss": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", 500) },
	} {
		dials, dial := 0, new(net.Dialer).DialContext
		r := newRecorded(t, patiently, func(c *Config) {
			c.Interval = patience // an idle connection is closed after three intervals
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials++
				return dial(ctx, network, address)
			}
		})
		u := r.upstream(upstream(t, nil, listing))
		for range 3 {
			r.once(t, u.poll)
		}
		assert.Equal(t, 1, dials, name)
	}
}

func TestErrorSaysWhichPartAndNotTooMuch(t *testing.T) {
	address, r := upstream(t, say("a "+strings.Repeat("é", 1<<16)+"\n"), nil), newRecorded(t, patiently)
	r.once(t, r.upstream(address).poll)
	text := r.silent[address][0]
	assert.Contains(t, text, "upstream "+address+": metrics: ")
	assert.Less(t, len(text), 400)
	assert.True(t, utf8.ValidString(text))
}

// A probe reads the load from the response header, in each format that responses to jobs can have. A response without a
// load, an error and a redirect to another server fail the probe of that upstream only.
func TestProbe(t *testing.T) {
	asked := make(chan string, 10)
	serve := func(status int, header, value, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Method + " " + r.URL.RequestURI()
			w.Header().Set(header, value)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	const load, orca = "running=12, stalled=3, busy=11, cached=1", "TEXT named_metrics.running=12, named_metrics.stalled=3, named_metrics.busy=11, named_metrics.cached=1"
	good := serve(200, "X-Load", load, "")
	var failed sync.Map
	s := newRecorded(t, func(c *Config) {
		c.Settings.Probe = "/load?of=me"
		c.Probed = func(address string, err error) { failed.Store(address, fmt.Sprint(err)) }
	})
	addresses := []string{
		good, serve(200, orcaHeader, orca, "the body does not matter"), serve(404, "X-Load", load, ""), serve(200, "X-Other", load, ""),
		serve(302, "Location", "http://"+good+"/load", ""), "127.0.0.1:1",
	}
	loads := s.Probe(t.Context(), addresses, "a&b /é", patience)
	for i, load := range loads[:2] {
		require.NotNil(t, load, i)
		assert.Equal(t, []float64{12, 3, 11}, []float64{load.Running[0], load.Stalled[0], load.CoresBusy})
		assert.True(t, load.Known && load.Cached)
	}
	assert.Equal(t, make([]*pool.Hint, 4), loads[2:])
	for i, want := range []string{"<nil>", "<nil>", "404", "no load", "302", "refused"} {
		why, _ := failed.Load(addresses[i])
		assert.Contains(t, why, want)
	}
	for range 5 {
		assert.Equal(t, "GET /load?of=me&project=a%26b+%2F%C3%A9", <-asked)
	}
	s.cfg.Settings.Probe = "/load"
	s.Probe(t.Context(), addresses[:1], "7", patience)
	s.Probe(t.Context(), addresses[:1], "", patience)
	assert.Equal(t, []string{"GET /load?project=7", "GET /load"}, []string{<-asked, <-asked})
}

// All probes run at the same time. One that hangs takes no longer than the timeout, and the results of
// the others count.
func TestAProbeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := map[string]time.Duration{"a:1": 3 * time.Millisecond, "b:1": time.Hour, "c:1": 4 * time.Millisecond}
		f := newFleet(t, func(c *Config) { c.Probed = func(string, error) {} })
		f.answer = func(r *http.Request) (*http.Response, error) {
			if err := after(r, takes[r.URL.Host]); err != nil {
				return nil, err
			}
			resp := respond(http.StatusOK, http.NoBody)
			resp.Header.Set("X-Load", fmt.Sprintf("at=%d, running=1, stalled=0", time.Now().Unix()-30)) // its clock is slow
			return resp, nil
		}
		begun := time.Now()
		loads := f.Probe(t.Context(), []string{"a:1", "b:1", "c:1"}, "", 20*time.Millisecond)
		assert.Equal(t, 20*time.Millisecond, time.Since(begun))
		require.NotNil(t, loads[0])
		assert.Equal(t, 1500*time.Microsecond, loads[0].At.Sub(begun), "midway between request and response")
		assert.True(t, loads[1] == nil && loads[2] != nil)
		begun = time.Now()
		f.Probe(t.Context(), []string{"a:1", "c:1"}, "", 20*time.Millisecond)
		assert.Equal(t, 4*time.Millisecond, time.Since(begun))
	})
}

// The settings determine which upstreams can be probed: those whose reports are polled.
func TestProbesNeedPolling(t *testing.T) {
	with := func(change func(*Settings)) bool {
		s := Default()
		change(&s)
		return s.Probes()
	}
	assert.True(t, with(func(*Settings) {}))
	assert.False(t, with(func(s *Settings) { s.Probe = none }))
	assert.False(t, with(func(s *Settings) { s.Instead = none }))
	assert.False(t, with(func(s *Settings) { s.HealthCheckPath = "/healthz" }))
	assert.False(t, with(func(s *Settings) { s.Prometheus = "http://prometheus:9090" }))
}

// Only a 2xx response confirms a withdrawal.
func TestWithdraw(t *testing.T) {
	status := 0
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.EscapedPath()
		w.WriteHeader(status)
	}))
	defer server.Close()
	s := newRecorded(t)
	address := server.Listener.Addr().String()
	for status = range 600 {
		if status >= 200 {
			assert.Equal(t, status < 300, s.Withdraw(address, "/v1/jobs/{id}?now", "a/b"), status)
			assert.Equal(t, "DELETE /v1/jobs/a%2Fb", asked)
		}
	}
	assert.False(t, s.Withdraw("127.0.0.1:1", "/v1/jobs/{id}", "a"))
	assert.False(t, s.Withdraw(address, "/{id}\x7f", "a"))
}
