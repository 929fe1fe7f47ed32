package admin_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
