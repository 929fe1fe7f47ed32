package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// fakeConsole counts how often it is asked for the moment.
type fakeConsole struct{ imbalance float64 }

func (c *fakeConsole) Now() admin.Now {
	return admin.Now{
		Waiting: 3, Imbalance: c.imbalance,
		Upstreams: []admin.Upstream{{State: pool.State{Upstream: pool.Upstream{Address: "a:1"}, Why: "draining"}, Mode: quality.Losing}},
	}
}

func (c *fakeConsole) History() quality.Series {
	return quality.Series{StepSeconds: 10, At: []int64{1}}
}

func (c *fakeConsole) Capacity() (capacity.Advice, error) {
	return capacity.Advice{JobsPerSecond: 12}, nil
}

func (c *fakeConsole) About() (admin.About, error) {
	return admin.About{Version: "1.2.3", Configuration: "listen: x\n"}, nil
}

func TestWhatThePageReads(t *testing.T) {
	cfg := config(&fakePool{})
	for path, want := range map[string]string{
		"/api/now":      `"mode": "losing"`,
		"/api/history":  `"step_seconds": 10`,
		"/api/capacity": `"jobs_per_second": 12`,
		"/api/about":    `"configuration": "listen: x\n"`,
	} {
		w := serve(t, cfg, http.MethodGet, path)
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Contains(t, w.Body.String(), want)
	}
	now := serve(t, cfg, http.MethodGet, "/api/now").Body.String()
	assert.Contains(t, now, `"address": "a:1"`, "a row is the state of its upstream")
	assert.Contains(t, now, `"why": "draining"`)
}

// stream opens /api/events, and returns its lines and what ends it.
func stream(t *testing.T, server *httptest.Server) (*http.Response, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/events", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response, bufio.NewScanner(response.Body)
}

func TestEvents(t *testing.T) {
	console := &fakeConsole{}
	cfg := config(&fakePool{})
	cfg.Console = console
	h, err := admin.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	response, lines := stream(t, server) //nolint:bodyclose // stream closes it
	assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	require.True(t, lines.Scan())
	assert.Equal(t, "event: now", lines.Text())
	require.True(t, lines.Scan())
	data, ok := strings.CutPrefix(lines.Text(), "data: ")
	require.True(t, ok)
	var now struct{ Waiting int }
	require.NoError(t, json.Unmarshal([]byte(data), &now))
	assert.Equal(t, 3, now.Waiting)

	for range 15 {
		response, _ := stream(t, server) //nolint:bodyclose // stream closes it
		assert.Equal(t, http.StatusOK, response.StatusCode)
	}
	response, lines = stream(t, server) //nolint:bodyclose // stream closes it
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.True(t, lines.Scan())
	assert.Equal(t, "16 pages are open already; close one", lines.Text())
}

func TestAnEventThatJSONLacks(t *testing.T) {
	cfg := config(&fakePool{})
	cfg.Console = &fakeConsole{imbalance: math.NaN()}
	h, err := admin.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	_, lines := stream(t, server) //nolint:bodyclose // stream closes it
	require.True(t, lines.Scan())
	assert.Equal(t, "event: problem", lines.Text())
	require.True(t, lines.Scan())
	assert.Equal(t, `data: "json: unsupported value: NaN"`, lines.Text())
}

func TestPageIsServed(t *testing.T) {
	cfg := config(&fakePool{})
	for path, kind := range map[string]string{
		"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript", "/icon.svg": "image/svg+xml",
		"/uplot/uPlot.iife.min.js": "text/javascript", "/uplot/LICENSE": "text/plain",
	} {
		w := serve(t, cfg, http.MethodGet, path)
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
		handler, err := admin.New(cfg)
		require.NoError(t, err)
		handler.ServeHTTP(again, r)
		assert.Equal(t, http.StatusNotModified, again.Code)
	}
	for _, path := range []string{"/index.html", "/nowhere", "/uplot/", "/page.go", "/../admin.go"} {
		assert.NotEqual(t, http.StatusOK, serve(t, cfg, http.MethodGet, path).Code, path)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, serve(t, cfg, http.MethodPost, "/").Code)
}

func TestDrain(t *testing.T) {
	p := &fakePool{}
	cfg := config(p)
	w := serve(t, cfg, http.MethodPost, "/api/upstreams/a:1/drain")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Contains(t, w.Body.String(), "admin_write is false")
	assert.False(t, p.drained)
	cfg.Write = func() bool { return true }
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodPost, "/api/upstreams/a%3A1/drain").Code)
	assert.True(t, p.drained)
	assert.Equal(t, http.StatusOK, serve(t, cfg, http.MethodDelete, "/api/upstreams/a:1/drain").Code)
	assert.False(t, p.drained)
	w = serve(t, cfg, http.MethodPost, "/api/upstreams/b:1/drain")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, w.Body.String(), `no upstream has the address \"b:1\"`)
	assert.Equal(t, http.StatusNotFound, serve(t, cfg, http.MethodGet, "/api/upstreams/a:1/drain").Code)
}

// The check sees every origin but this port's own.
func TestOwnOrigin(t *testing.T) {
	cfg := config(&fakePool{})
	var seen []string
	cfg.BrowserCheck = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header["Origin"] })
	}
	h, err := admin.New(cfg)
	require.NoError(t, err)
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

// An event comes every two seconds, until the browser leaves.
func TestEventsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := admin.New(config(&fakePool{}))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events", nil)) // returns when ctx ends
		assert.Equal(t, 3, strings.Count(w.Body.String(), "event: now\n"))
		assert.True(t, w.Flushed)
	})
}
