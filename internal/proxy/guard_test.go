package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/proxy"
)

func TestGuardBeforeAnotherHandler(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for hosts, want := range map[string]int{"": 403, "other": 403, "evil.example": 204, "*": 204} {
		h := proxy.NewGuard([]string{hosts}).Wrap(inner)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://evil.example/metrics", nil))
		assert.Equal(t, want, w.Code, hosts)
		assert.Equal(t, want == 403, strings.Contains(w.Body.String(), "under the key hosts"), "the response names the key that allows the name")
	}
}
