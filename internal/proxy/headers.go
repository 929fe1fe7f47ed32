package proxy

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/record"
)

// target returns the request target for the upstream: the submitter's target, byte
// for byte. Scheme and authority of an absolute target are removed, because the job
// goes only to the upstream that was picked.
func target(r *http.Request) (string, error) {
	raw := r.RequestURI
	switch {
	case strings.HasPrefix(raw, "/"), raw == "*" && r.Method == http.MethodOptions:
	case r.URL.Scheme == "http" && r.URL.Host != "":
		_, raw, _ = strings.Cut(raw, "://")
		raw = raw[strings.IndexAny(raw+"/", "/?"):]
		if !strings.HasPrefix(raw, "/") {
			raw = "/" + raw
		}
	default:
		return "", fmt.Errorf("%w: %q", record.ErrTarget, raw)
	}
	if i := strings.IndexFunc(raw, notInTarget); i >= 0 {
		return "", fmt.Errorf("%w: byte %q at position %d of %q", record.ErrTarget, raw[i:i+1], i+1, raw)
	}
	return raw, nil
}

// notInTarget reports whether a character is invalid in a request target (RFC 9112, 3.2,
// and RFC 3986). Brackets are accepted, because many clients do not escape them in a query.
// Escapes are not decoded, so invalid escapes are accepted.
func notInTarget(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"#<>\\^`{|}", r)
}

// outgoingHeader removes the hop-by-hop headers from the submitter's header, in place,
// and returns it as the header for upstreams.
func outgoingHeader(r *http.Request) http.Header {
	h := r.Header
	te := httpguts.HeaderValuesContainsToken(h["Te"], "trailers")
	endToEnd(h)
	delete(h, "Expect") // 100 Continue was sent: the body was received
	if te {
		h["Te"] = []string{"trailers"}
	}
	return h
}

func endToEnd(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name := range h {
		if hopByHop(name) {
			delete(h, name)
		}
	}
}

// hopByHop reports whether a header is hop-by-hop (RFC 9110, 7.6.1).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// withoutDefaults prevents net/http from adding headers that the upstream did not send.
func withoutDefaults(h http.Header) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, sent := h[name]; !sent {
			h[name] = nil
		}
	}
}
