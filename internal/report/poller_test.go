package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/test/memnet"
)

func TestPollHandsOverAReport(t *testing.T) {
	listing := gzipped(listingOf(100_000))
	s := newSubject(t, upstream(t, nil, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		assert.Equal(t, "pilotfish", r.Header.Get("User-Agent"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(listing)
	}))
	before := time.Now()
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Equal(t, byPriority(7, 2), r.Stalled)
	assert.Equal(t, byPriority(12, 3), r.Running)
	assert.True(t, r.At.After(before) && r.At.Before(time.Now()), "%v", r.At)
	assert.True(t, math.IsNaN(r.Wait), "nothing to compare with yet")
	assert.Equal(t, 100_000, r.Cached.Len())
	found, inside := 0, true
	for id := range 300_000 {
		if r.Cached.Contains(intake.Key(strconv.Itoa(id))) {
			found++
			inside = inside && id >= 100_000 && id < 200_000
		}
	}
	assert.Equal(t, 100_000, found)
	assert.True(t, inside)
}

// Some frameworks serve the metrics at /metrics/ and redirect /metrics.
func TestPollFollowsARedirectWithinItsUpstream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			http.Redirect(w, r, "/metrics/", http.StatusTemporaryRedirect)
			return
		}
		assert.Regexp(t, `^application/openmetrics-text;version=1\.0\.0;.*,text/plain;version=0\.0\.4;q=0\.4,\*/\*;q=0\.3$`, r.Header.Get("Accept"))
		_, _ = io.WriteString(w, goodPage)
	}))
	t.Cleanup(server.Close)
	r, err := newSubject(t, server.Listener.Addr().String(), func(c *Config) { c.CachePath = none }).once(t)
	require.NoError(t, err)
	assert.Equal(t, byPriority(7, 2), r.Stalled)
}

func TestPollHasMeansSinceTheLastReport(t *testing.T) {
	page := goodPage
	s := newSubject(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }, nil))
	_, err := s.once(t)
	require.NoError(t, err)

	page = "garbage\n" // a failed poll keeps the last report
	_, err = s.once(t)
	require.Error(t, err)

	page = change(t, `ruleserver_wait_seconds_sum{priority="low"} 2000`, `ruleserver_wait_seconds_sum{priority="low"} 2030`)
	page = strings.Replace(page, `ruleserver_wait_seconds_count{priority="low"} 1000`, `ruleserver_wait_seconds_count{priority="low"} 1010`, 1)
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Equal(t, 3.0, r.Wait)

	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait), "no new jobs")

	page = goodPage
	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait), "restarted")
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
		{"gzip cut short", write(200, "gzip", gzipped([]byte(goodPage))[:50]), "cut short", "cut short"},
		{"gzip bent", write(200, "gzip", append(gzipped(nil), "more of the same"...)), "gzip: invalid header", "gzip: invalid header"},
		{"another encoding", write(200, "br", nil), `unexpected content encoding "br"`, `unexpected content encoding "br"`},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, " ")
		}, "cut short", "cut short"},
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
			address := upstream(t, c.handler, nil)
			r, err := newSubject(t, address).once(t)
			assert.Nil(t, r)
			assert.EqualError(t, err, fmt.Sprintf("upstream %s: metrics: %s", address, c.metrics))

			address = upstream(t, nil, c.handler)
			r, err = newSubject(t, address).once(t)
			if assert.NotNil(t, r, "the load is still known") {
				assert.Equal(t, byPriority(7, 2), r.Stalled)
				assert.True(t, r.Cached == nil)
			}
			assert.EqualError(t, err, fmt.Sprintf("upstream %s: cache listing: %s", address, c.listing))
		})
	}
}

// TestPollNamesWhatIsSilent uses fake time, because the timeout must be too short for one part
// and long enough for the others, on a busy machine too.
func TestPollNamesWhatIsSilent(t *testing.T) {
	begin := func(encoding string, text []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			_, _ = w.Write(text)
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"from the beginning": hang,
		"after its headers":  begin("", nil),
		"within its body":    begin("", []byte(" ")),
		"within its gzip":    begin("gzip", gzipped([]byte(goodPage))[:5]),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := inMemory(t, handler, nil, 2*time.Second)
				r, err := s.once(t)
				assert.Nil(t, r)
				assert.EqualError(t, err, "upstream rps:9001: metrics: no complete response within 2s")
			})
			synctest.Test(t, func(t *testing.T) {
				s, _ := inMemory(t, nil, handler, 2*time.Second)
				r, err := s.once(t)
				if assert.NotNil(t, r, "the load is still known") {
					assert.Equal(t, byPriority(7, 2), r.Stalled)
					assert.True(t, r.Cached == nil)
				}
				assert.EqualError(t, err, "upstream rps:9001: cache listing: no complete response within 2s")
			})
		})
	}
}

// inMemory is an upstream in fake time that the test polls itself. dials counts the
// connections.
func inMemory(t *testing.T, metrics, listing http.HandlerFunc, timeout time.Duration) (s *subject, dials *int) {
	const address = "rps:9001"
	var network memnet.Network
	web := &http.Server{Handler: pages(metrics, listing)}
	l := network.Listen(address)
	ended := make(chan error)
	go func() { ended <- web.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, web.Close())
		assert.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	dials = new(int)
	return newSubject(t, address, func(c *Config) {
		c.Timeout = timeout
		c.Dial = func(ctx context.Context, by, to string) (net.Conn, error) {
			*dials++
			return network.Dial(ctx, by, to)
		}
	}), dials
}

func TestPollOfAnAddressThatIsNone(t *testing.T) {
	for _, address := range []string{"", "a b:1", "host:port:1"} {
		s := newSubject(t, address, func(c *Config) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no such host") }
		})
		r, err := s.once(t)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "upstream "+address+": metrics: ")
	}
}

func TestPollKeepsItsConnection(t *testing.T) {
	for name, listing := range map[string]http.HandlerFunc{
		"a listing": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(listingOf(10)) },
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(listingOf(10)))
		},
		"no listing":   http.NotFound,
		"a small loss": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", 500) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that net/http's own timeouts never fire
				s, dials := inMemory(t, nil, listing, patience)
				for range 3 {
					_, _ = s.once(t)
				}
				assert.Equal(t, 1, *dials)
			})
		})
	}
}

func TestNoListingIsAskedFor(t *testing.T) {
	s := newSubject(t, upstream(t, nil, func(http.ResponseWriter, *http.Request) { t.Error("nobody wants it") }))
	s.cfg.CachePath = none
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Nil(t, r.Cached)
}

func TestErrorSaysWhichPartAndNotTooMuch(t *testing.T) {
	s := newSubject(t, upstream(t, say("a "+strings.Repeat("é", 1<<16)+"\n"), nil))
	_, err := s.once(t)
	require.ErrorContains(t, err, "upstream "+s.address+": metrics: ")
	assert.Less(t, len(err.Error()), 400)
	assert.True(t, utf8.ValidString(err.Error()))
}
