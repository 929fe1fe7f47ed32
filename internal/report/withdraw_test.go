package report

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Only a 2xx response confirms a withdrawal.
func TestWithdraw(t *testing.T) {
	status := 0
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.EscapedPath()
		w.WriteHeader(status)
	}))
	defer server.Close()
	s := New(testConfig())
	defer s.client.CloseIdleConnections()
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
