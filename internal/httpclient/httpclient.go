// Package httpclient has the HTTP clients of pilotfish. They do not follow redirects to another server:
// such a redirect could make the sidecar access a server that only it can reach, or send its
// credentials to another server.
package httpclient

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects bounds the number of redirects of one request.
const maxRedirects = 5

// New returns a client that follows a redirect of a GET or HEAD within its server. Any other redirect is returned as the
// response.
func New(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: CheckRedirect}
}

// CheckRedirect is the CheckRedirect of New's client, for clients that a library creates.
func CheckRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet && first.Method != http.MethodHead || len(via) > maxRedirects || origin(next.URL) != origin(first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

// Proxy is http.ProxyFromEnvironment, but returns an error for a redirected request. It is for libraries that do not accept a
// CheckRedirect.
func Proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, fmt.Errorf("a redirect to %q is not followed", r.URL.Redacted())
	}
	return http.ProxyFromEnvironment(r)
}

// origin returns scheme, host and port, which identify a server.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
