package admin_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
)

func row(address string) quality.Upstream {
	return quality.Upstream{State: pool.State{Upstream: pool.Upstream{Address: address}, Why: "draining", Status: "draining; slow: 3 times"}, Mode: quality.JobsFail}
}

// config returns a Config with one upstream, a:1, that can be drained.
func config() admin.Config {
	return admin.Config{
		Metrics: http.NotFoundHandler(),
		Now: func() admin.Now {
			return admin.Now{Waiting: 3, View: quality.View{Upstreams: []quality.Upstream{row("a:1")}}}
		},
		TokenFile: func() string { return "" },
		Points:    func() []quality.Point { return []quality.Point{{At: 10}} },
		Events:    func() []logging.Event { return []logging.Event{{Text: "upstreams joined"}} },
		About:     func() admin.About { return admin.About{Configuration: "listen: x\n"} },
		Describe: func(io.Reader, int64) (intake.Facts, error) {
			return intake.Facts{Project: "p", Data: &intake.Parts{Set: true}, Bytes: 9, LengthKey: 7, Priority: selection.High}, nil
		},
		Explain: func(pool.Request) ([]pool.Ranked, error) {
			return []pool.Ranked{{Address: "a:1", Picked: true}, {Address: "b:1"}}, nil
		},
		Drain:        func(address string, _ bool) bool { return address == "a:1" },
		Write:        func() bool { return false },
		BrowserCheck: func(h http.Handler) http.Handler { return h },
	}
}

func serve(t *testing.T, cfg admin.Config, method, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, nil)
	for _, c := range change {
		c(r)
	}
	admin.New(cfg).ServeHTTP(w, r)
	return w
}

// Each path replies with the sidecar's state, and only after the check of browsers.
func TestPaths(t *testing.T) {
	cfg, checked := config(), config()
	cfg.Write, checked.Write = func() bool { return true }, func() bool { return true }
	checked.BrowserCheck = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	}
	for path, want := range map[string]string{
		"/healthz":       "ok\n",
		"/readyz":        "ready: 0 of 1 upstreams are eligible\na:1: draining; slow: 3 times\n",
		"/metrics":       "404",
		"/api/now":       `"waiting": 3`,
		"/api/upstreams": `"why": "draining"`,
		"/api/history":   `"at": 10`,
		"/api/events":    `"text": "upstreams joined"`,
		"/api/about":     `"configuration": "listen: x\n"`,
		"/api/pick":      `"upstream": "a:1"`,
		"/debug/pprof/":  "goroutine",
		"/page.js":       "import",
	} {
		assert.Contains(t, serve(t, cfg, http.MethodGet, path).Body.String(), want, path)
		assert.Equal(t, http.StatusForbidden, serve(t, checked, http.MethodGet, path).Code, path)
	}
	assert.Equal(t, http.StatusNotFound, serve(t, config(), http.MethodGet, "/debug/pprof/").Code)
	state := admin.Now{Warnings: []string{"configuration refused since 2026-03-14 19:17 UTC"}}
	cfg.Now = func() admin.Now { return state }
	w := serve(t, cfg, http.MethodGet, "/readyz")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "ready: 0 of 0 upstreams are eligible\nconfiguration refused since 2026-03-14 19:17 UTC\n", w.Body.String())
	state.NotReady = "no upstreams"
	w = serve(t, cfg, http.MethodGet, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "no upstreams\nconfiguration refused since 2026-03-14 19:17 UTC\n", w.Body.String())
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodHead, "/healthz").Code)
}

func TestPick(t *testing.T) {
	cfg := config()
	var asked pool.Request
	cfg.Explain = func(r pool.Request) ([]pool.Ranked, error) {
		asked = r
		return []pool.Ranked{{Address: "a:1"}}, nil
	}
	for target, want := range map[string]pool.Request{
		"/api/pick":                             {Priority: selection.Low},
		"/api/pick?project=12345":               {Project: intake.Key("12345"), Priority: selection.Low},
		"/api/pick?project=a%26b&priority=high": {Project: intake.Key("a&b"), Priority: selection.High},
		"/api/pick?length_key=7&length_key=b":   {Priority: selection.Low, LengthKey: intake.LengthKey([]string{"7", "b"})},
	} {
		require.Equal(t, http.StatusOK, serve(t, cfg, http.MethodGet, target).Code, target)
		assert.Equal(t, want, asked)
	}
	require.Equal(t, http.StatusOK, serve(t, cfg, http.MethodPost, "/api/pick?project=1").Code)
	assert.Equal(t, pool.Request{Data: &intake.Parts{Set: true}, Bytes: 9, LengthKey: 7, Priority: selection.High}, asked, "facts from the body")
	for err, want := range map[error]int{errors.New("no job"): 400, intake.ErrTooLarge: 413, intake.ErrNoRoom: 503} {
		unread := cfg
		unread.Describe = func(io.Reader, int64) (intake.Facts, error) { return intake.Facts{}, err }
		assert.Equal(t, want, serve(t, unread, http.MethodPost, "/api/pick").Code)
	}
	for query, want := range map[string]string{
		"priority=HIGH": `priority: "HIGH" is neither high nor low`,
		"project=a;b":   "invalid semicolon separator in query",
		"length_key=1&length_key=2&length_key=3&length_key=4&length_key=5": "length_key: 5 values are more than 4",
		"project=%zz": `invalid URL escape "%zz"`,
	} {
		w := serve(t, cfg, http.MethodGet, "/api/pick?"+query)
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		var got struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		assert.Equal(t, want, got.Error)
	}
	cfg.Explain = func(pool.Request) ([]pool.Ranked, error) { return nil, pool.ErrEmpty }
	w := serve(t, cfg, http.MethodGet, "/api/pick")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Contains(t, w.Body.String(), pool.ErrEmpty.Error())
}

// deadlines records the deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// A client that sends a request or reads a response too slowly loses its connection: a few of them could keep probes out.
// Profiles have no timeouts, because they take as long as their parameter says.
func TestSlowRequests(t *testing.T) {
	cfg := config()
	cfg.Write = func() bool { return true }
	for path, bounded := range map[string]bool{"/healthz": true, "/debug/pprof/symbol": false} {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		admin.New(cfg).ServeHTTP(d, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, d.Code)
		assert.Equal(t, bounded, !d.read.IsZero(), path)
		assert.Equal(t, bounded, !d.write.IsZero(), path)
	}
}

// A value that cannot be encoded is an error, not an empty page.
func TestNumbersWithoutJSON(t *testing.T) {
	cfg := config()
	cfg.Points = func() []quality.Point { return []quality.Point{{Jobs: math.Inf(1)}} }
	w := serve(t, cfg, http.MethodGet, "/api/history")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), "unsupported value: +Inf")
}

func TestDrain(t *testing.T) {
	cfg := config()
	var did []bool
	cfg.Drain = func(address string, on bool) bool {
		did = append(did, on)
		return address == "a:1"
	}
	w := serve(t, cfg, http.MethodPost, "/api/upstreams/a:1/drain")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Contains(t, w.Body.String(), "admin_write is false")
	assert.Empty(t, did)
	cfg.Write = func() bool { return true }
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodPost, "/api/upstreams/a%3A1/drain").Code)
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodDelete, "/api/upstreams/a:1/drain").Code)
	assert.Equal(t, []bool{true, false}, did)
	w = serve(t, cfg, http.MethodPost, "/api/upstreams/b:1/drain")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, w.Body.String(), `no upstream has the address \"b:1\"`)
	assert.Equal(t, http.StatusNotFound, serve(t, cfg, http.MethodGet, "/api/upstreams/a:1/drain").Code)
}

// The check rejects every origin except this port's own.
func TestOwnOrigin(t *testing.T) {
	cfg := config()
	var seen []string
	cfg.BrowserCheck = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header["Origin"] })
	}
	h := admin.New(cfg)
	for origin, passed := range map[string]bool{
		"http://localhost:9180": true, "https://localhost:9180": false, "http://localhost": false, "http://evil.example": false, "null": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9180/", nil)
		r.Header.Set("Origin", origin)
		seen = nil
		h.ServeHTTP(httptest.NewRecorder(), r)
		assert.Equal(t, passed, seen == nil, origin)
		assert.Equal(t, origin, r.Header.Get("Origin"), "the request itself stays")
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost:9180/", nil)
	r.Header["Origin"] = []string{"http://localhost:9180", "http://evil.example"}
	h.ServeHTTP(httptest.NewRecorder(), r)
	assert.Len(t, seen, 2)
}

func TestPageIsServed(t *testing.T) {
	cfg := config()
	handler := admin.New(cfg)
	for path, kind := range map[string]string{
		"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript", "/icon.svg": "image/svg+xml",
		"/uplot/uPlot.iife.min.js": "text/javascript", "/uplot/LICENSE": "text/plain",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code, path)
		h := w.Header()
		assert.Contains(t, h.Get("Content-Type"), kind, path)
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'")
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		assert.Equal(t, []string{"nosniff", "no-referrer", "same-origin", "same-origin", "no-cache"}, []string{
			h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"),
			h.Get("Cross-Origin-Opener-Policy"), h.Get("Cross-Origin-Resource-Policy"), h.Get("Cache-Control"),
		})
		require.NotEmpty(t, h.Get("ETag"))

		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("If-None-Match", h.Get("ETag"))
		again := httptest.NewRecorder()
		handler.ServeHTTP(again, r)
		assert.Equal(t, http.StatusNotModified, again.Code)
	}
	for _, path := range []string{"/index.html", "/nowhere", "/uplot/", "/page.go", "/../admin.go"} {
		assert.NotEqual(t, http.StatusOK, serve(t, cfg, http.MethodGet, path).Code, path)
	}
	posted := serve(t, cfg, http.MethodPost, "/v1/jobs")
	assert.Equal(t, http.StatusMethodNotAllowed, posted.Code)
	assert.Equal(t, "GET, HEAD", posted.Header().Get("Allow"))
	assert.Contains(t, posted.Body.String(), "this is the admin port, which has no POST /v1/jobs; submit jobs to the address of listen")
}

// The page names the modes in one file.
func TestModesOfThePage(t *testing.T) {
	files, err := filepath.Glob("page/*.js")
	require.NoError(t, err)
	for _, mode := range append(quality.Modes(quality.JobsFail), quality.AttemptsFail) {
		var named []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.Contains(string(text), strconv.Quote(string(mode))) {
				named = append(named, file)
			}
		}
		assert.Equal(t, []string{"page/dom.js"}, named, mode)
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	cfg := config()
	cfg.TokenFile = func() string { return file }
	get := func(path string, show func(*http.Request)) *httptest.ResponseRecorder {
		return serve(t, cfg, http.MethodGet, path, show)
	}
	nothing := func(*http.Request) {}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	password := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("anyone", token) }
	}
	for name, c := range map[string]struct {
		path string
		show func(*http.Request)
		want int
	}{
		"nothing":             {"/api/now", nothing, 401},
		"nothing, page":       {"/", nothing, 401},
		"the token":           {"/api/now", bearer("s3cret"), 200},
		"another token":       {"/api/now", bearer("secret"), 401},
		"an empty token":      {"/api/now", bearer(""), 401},
		"a password":          {"/", password("s3cret"), 200},
		"another password":    {"/", password("x"), 401},
		"a scheme of its own": {"/", func(r *http.Request) { r.Header.Set("Authorization", "Token s3cret") }, 401},
		"health":              {"/healthz", nothing, 200},
		"readiness":           {"/readyz", nothing, 200},
		"health of sorts":     {"/healthz/../api/now", nothing, 401},
	} {
		assert.Equal(t, c.want, get(c.path, c.show).Code, name)
	}
	refused := get("/", nothing)
	assert.Contains(t, refused.Body.String(), "admin_token_file")
	assert.Contains(t, refused.Header().Get("WWW-Authenticate"), "Basic")

	require.NoError(t, os.WriteFile(file, []byte("next"), 0o600))
	assert.Equal(t, 401, get("/api/now", bearer("s3cret")).Code)
	assert.Equal(t, 200, get("/api/now", bearer("next")).Code)
	require.NoError(t, os.Remove(file))
	assert.Equal(t, 503, get("/api/now", bearer("")).Code, "a token that is gone opens nothing")
	assert.Equal(t, 200, get("/healthz", nothing).Code)
	file = ""
	assert.Equal(t, 200, get("/api/now", nothing).Code)
}
