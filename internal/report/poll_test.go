package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// subject is a follower of one upstream, polled by hand.
type subject struct {
	*follower
	reports []pool.Report
	errs    []error
}

func newSubject(t *testing.T, c Config, address string) *subject {
	or(&c.Timeout, time.Minute) // a busy machine may be slow
	s := &subject{}
	p, err := New(c, rand.New(rand.NewPCG(1, 2)),
		func(_ string, r pool.Report) { s.reports = append(s.reports, r) },
		func(at string, err error) {
			assert.Equal(t, address, at)
			s.errs = append(s.errs, err)
		})
	require.NoError(t, err)
	t.Cleanup(p.fetcher.client.CloseIdleConnections)
	s.follower = newFollower(p, address)
	return s
}

// once polls and returns what was handed over; a nil report is none.
func (s *subject) once(t *testing.T) (*pool.Report, error) {
	s.reports, s.errs = nil, nil
	s.poll(t.Context())
	require.LessOrEqual(t, len(s.reports), 1)
	require.LessOrEqual(t, len(s.errs), 1)
	require.NotZero(t, len(s.reports)+len(s.errs), "a poll that ended silently")
	var r *pool.Report
	if len(s.reports) == 1 {
		r = &s.reports[0]
	}
	return r, errors.Join(s.errs...)
}

// upstream is a server of both parts; a nil handler answers well, with no listing.
func upstream(t *testing.T, metrics, listing http.HandlerFunc) string {
	if metrics == nil {
		metrics = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, goodPage) }
	}
	if listing == nil {
		listing = http.NotFound
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /v1/cache/projects", listing)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func gzipped(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestPollHandsOverAReport(t *testing.T) {
	listing := gzipped(listingOf(100_000))
	s := newSubject(t, Config{}, upstream(t, nil, func(w http.ResponseWriter, r *http.Request) {
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
	assert.True(t, math.IsNaN(r.Wait) && math.IsNaN(r.Response), "nothing to compare with yet")
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

func TestPollTellsMeansSinceTheReportBefore(t *testing.T) {
	page := goodPage
	s := newSubject(t, Config{}, upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }, nil))
	_, err := s.once(t)
	require.NoError(t, err)

	page = "garbage\n" // a poll that fails leaves the report before in place
	_, err = s.once(t)
	require.Error(t, err)

	page = change(t, `ruleserver_wait_seconds_sum{priority="low"} 2000`, `ruleserver_wait_seconds_sum{priority="low"} 2030`)
	page = strings.Replace(page, `ruleserver_wait_seconds_count{priority="low"} 1000`, `ruleserver_wait_seconds_count{priority="low"} 1010`, 1)
	page = strings.Replace(page, `ruleserver_execution_seconds_sum{priority="low"} 9000`, `ruleserver_execution_seconds_sum{priority="low"} 9040`, 1)
	page = strings.Replace(page, `ruleserver_execution_seconds_count{priority="low"} 1000`, `ruleserver_execution_seconds_count{priority="low"} 1020`, 1)
	r, err := s.once(t)
	require.NoError(t, err)
	assert.Equal(t, 3.0, r.Wait)
	assert.Equal(t, 5.0, r.Response)

	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait), "no new jobs")

	page = goodPage
	r, err = s.once(t)
	require.NoError(t, err)
	assert.True(t, math.IsNaN(r.Wait) && math.IsNaN(r.Response), "restarted")
}

// TestPollNamesWhatIsBroken serves each broken answer as the metrics and as
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
	huge := func(encoding string, pack func([]byte) []byte) http.HandlerFunc {
		metrics := write(200, encoding, pack(bytes.Repeat([]byte("# all is well"+strings.Repeat(".", 987)+"\n"), 10_000)))
		listing := write(200, encoding, pack(listingOf(30_000)))
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				metrics(w, r)
			} else {
				listing(w, r)
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
		{"elsewhere", http.RedirectHandler("/v1/trap", http.StatusFound).ServeHTTP, "status 302 Found", "status 302 Found"},
		{"empty", write(200, "", nil), "metric ruleserver_stalled_joblets is missing", "empty"},
		{"garbage", write(200, "", []byte("\x00\xff")), "text format parsing error in line 1: invalid metric name", `jsontext: invalid character '\x00' at start of value`},
		{"huge", huge("", func(b []byte) []byte { return b }), "longer than 4194304 bytes", "longer than 1000000 bytes"},
		{"huge when unpacked", huge("gzip", gzipped), "longer than 4194304 bytes", "longer than 1000000 bytes"},
		{"not gzip", write(200, "gzip", []byte("{}    plain text")), "gzip: invalid header", "gzip: invalid header"},
		{"gzip cut short", write(200, "gzip", gzipped([]byte(goodPage))[:50]), "cut short", "cut short"},
		{"gzip bent", write(200, "gzip", append(gzipped(nil), "more of the same"...)), "gzip: invalid header", "gzip: invalid header"},
		{"another encoding", write(200, "br", nil), `content encoding "br" was not asked for`, `content encoding "br" was not asked for`},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, " ")
		}, "cut short", "cut short"},
		{"silent", hang, "no whole answer within 2s", "no whole answer within 2s"},
		{"silent after its headers", func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, "no whole answer within 2s", "no whole answer within 2s"},
		{"silent amid its body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, "no whole answer within 2s", "no whole answer within 2s"},
		{"silent amid its gzip", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped([]byte(goodPage))[:5])
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, "no whole answer within 2s", "no whole answer within 2s"},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 100_000))
		}, "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted", "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := Config{MaxCacheBytes: 1_000_000}
			if strings.HasPrefix(c.name, "silent") {
				config.Timeout = 2 * time.Second // long enough for the part that is well
			}

			address := upstream(t, c.handler, nil)
			r, err := newSubject(t, config, address).once(t)
			assert.Nil(t, r)
			assert.EqualError(t, err, fmt.Sprintf("upstream %s: metrics: %s", address, c.metrics))

			address = upstream(t, nil, c.handler)
			r, err = newSubject(t, config, address).once(t)
			if assert.NotNil(t, r, "the load is known all the same") {
				assert.Equal(t, byPriority(7, 2), r.Stalled)
				assert.True(t, r.Cached == nil)
			}
			assert.EqualError(t, err, fmt.Sprintf("upstream %s: cache listing: %s", address, c.listing))
		})
	}
}

func TestPollOfWhatSpeaksNoHTTP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the request has begun
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.7\r\n")
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	s := newSubject(t, Config{}, address)
	r, err := s.once(t)
	assert.Nil(t, r)
	assert.ErrorContains(t, err, "upstream "+address+": metrics: ")
	assert.ErrorContains(t, err, `malformed HTTP`)
	<-done

	require.NoError(t, listener.Close())
	r, err = s.once(t)
	assert.Nil(t, r)
	assert.EqualError(t, err, "upstream "+address+": metrics: dial tcp "+address+": connect: connection refused")
}

func TestPollOfAnAddressThatIsNone(t *testing.T) {
	for _, address := range []string{"", "a b:1", "host:port:1"} {
		s := newSubject(t, Config{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("no such host")
		})}, address)
		r, err := s.once(t)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "upstream "+address+": metrics: ")
	}
}

func TestErrorSaysWhichPartAndNotTooMuch(t *testing.T) {
	s := newSubject(t, Config{}, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a "+strings.Repeat("é", 1<<16)+"\n")
	}, nil))
	_, err := s.once(t)
	var failure *Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, Metrics, failure.Part)
	assert.Equal(t, s.address, failure.Address)
	assert.Less(t, len(failure.Error()), 400)
	assert.Equal(t, strings.ToValidUTF8(failure.Error(), ""), failure.Error())

	s = newSubject(t, Config{}, upstream(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	_, err = s.once(t)
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, CacheListing, failure.Part)
	assert.ErrorIs(t, err, statusError(http.StatusTeapot))
}

// TestPollAsksOnlyForAChangedListing follows one upstream's listing through its life.
func TestPollAsksOnlyForAChangedListing(t *testing.T) {
	var tag, asked, body string
	status := http.StatusOK
	s := newSubject(t, Config{}, upstream(t, nil, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("If-None-Match")
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		if status == http.StatusOK && asked != "" && asked == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	expect := func(wantAsked string, wantIDs ...string) pool.CacheSet {
		t.Helper()
		r, err := s.once(t)
		require.NoError(t, err)
		assert.Equal(t, wantAsked, asked)
		require.False(t, r.Cached == nil)
		assert.Equal(t, len(wantIDs), r.Cached.Len())
		for _, id := range wantIDs {
			assert.True(t, r.Cached.Contains(intake.Key(id)), id)
		}
		return r.Cached
	}

	body = `{"projects":[{"id":1}]}`
	expect("", "1")
	tag, body = `"a"`, `{"projects":[{"id":1},{"id":2}]}`
	set := expect("", "1", "2")
	assert.Same(t, set, expect(`"a"`, "1", "2"), "unchanged")

	tag, body = `W/"b"`, `{"projects":[`
	r, err := s.once(t)
	assert.Error(t, err)
	assert.True(t, r.Cached == nil, "a listing that cannot be read tells nothing")
	tag = `"a"`
	assert.Same(t, set, expect(`"a"`, "1", "2"), "and costs nothing of what was known")

	tag, body = `W/"c"`, `{"projects":[]}`
	expect(`"a"`)
	assert.Equal(t, `W/"c"`, s.etag)

	status = http.StatusNotFound
	r, err = s.once(t)
	require.NoError(t, err, "an upstream may have no listing")
	assert.True(t, r.Cached == nil)

	status, tag, body = http.StatusOK, "", `{"projects":[{"id":3}]}`
	expect("", "3")
	expect("", "3")
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
			s := newSubject(t, Config{}, upstream(t, nil, listing))
			dials := 0
			transport := s.fetcher.client.Transport.(*http.Transport)
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials++
				return dial(ctx, network, address)
			}
			for range 3 {
				_, _ = s.once(t)
			}
			assert.Equal(t, 1, dials)
		})
	}
}
