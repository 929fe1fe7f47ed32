package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// endToEnd copies the headers that are meant for the other end.
func endToEnd(dst, src http.Header) {
	for name, values := range src {
		if !hopByHop(name) {
			dst[name] = values
		}
	}
	for _, list := range src["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(dst, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
}

// hopByHop reports whether a header concerns one connection only (RFC 9110, 7.6.1).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// unadorned keeps the server from adding headers that the upstream did not send.
func unadorned(h http.Header) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, sent := h[name]; !sent {
			h[name] = nil
		}
	}
}
