package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
)

func TestPageIsServed(t *testing.T) {
	cfg := config()
	handler, err := admin.New(cfg)
	require.NoError(t, err)
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
	assert.Equal(t, http.StatusMethodNotAllowed, serve(t, cfg, http.MethodPost, "/").Code)
}
