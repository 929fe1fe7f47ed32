package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"example.org/pilotfish/internal/files"
)

// authorized accepts only requests with the token. Probes need none: they only learn whether
// the sidecar is alive and ready. If the token cannot be read, all other requests are
// refused.
func authorized(file func() string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := file()
		if path == "" || r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		want, err := files.Token(path)
		switch {
		case err != nil:
			http.Error(w, "the admin token cannot be read, so all requests are refused: "+err.Error(), http.StatusServiceUnavailable)
		case !equalInConstantTime(tokenOf(r), want):
			w.Header().Set("WWW-Authenticate", `Basic realm="pilotfish", charset="UTF-8"`)
			w.Header().Add("WWW-Authenticate", `Bearer realm="pilotfish"`)
			http.Error(w, "the admin port needs the token of admin_token_file: as a bearer token, or as a password with any user name", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// tokenOf returns the token of a request; "" if it has none.
func tokenOf(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// equalInConstantTime compares in constant time, also for different lengths.
func equalInConstantTime(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
