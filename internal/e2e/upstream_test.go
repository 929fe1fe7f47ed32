package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// upstream starts an upstream that does what h does, and returns its host:port.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// echo answers with the body, and its name.
func echo(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream", name)
		_, _ = io.Copy(w, r.Body)
	}
}

// gated answers in two parts: the first at once, the second when the gate opens.
type gated struct{ gate chan struct{} }

const firstPart, secondPart = "first,", "second"

func (g gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, firstPart)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-g.gate:
		_, _ = io.WriteString(w, secondPart)
	case <-r.Context().Done():
	}
}
