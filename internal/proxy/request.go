package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"example.org/pilotfish/internal/record"
)

var errTarget = &record.Refusal{
	Status: 400, Reason: "bad-target",
	Title: "the request target is refused", Text: "the request target cannot be passed on unaltered",
}

// target is the URL at an upstream that puts the submitter's own target,
// byte for byte, on the request line. Of an absolute one, the authority is
// dropped: jobs go to the upstream that was picked and nowhere else.
func target(r *http.Request, address string) (*url.URL, error) {
	raw := r.RequestURI
	switch {
	case strings.HasPrefix(raw, "/"), raw == "*":
	case r.URL.Scheme == "http" && r.URL.Host != "":
		_, raw, _ = strings.Cut(raw, "://")
		raw = raw[strings.IndexAny(raw+"/", "/?"):]
		if !strings.HasPrefix(raw, "/") {
			raw = "/" + raw
		}
	default:
		return nil, fmt.Errorf("%w: %q", errTarget, raw)
	}
	path, query, asked := strings.Cut(raw, "?")
	u := &url.URL{Scheme: "http", Host: address, Opaque: path, RawQuery: query, ForceQuery: asked}
	if strings.HasPrefix(path, "//") { // an opaque one would be taken for an authority
		u.Opaque, u.Path, u.RawPath = "", r.URL.Path, r.URL.RawPath
	}
	if u.RequestURI() != raw {
		return nil, fmt.Errorf("%w: %q", errTarget, raw)
	}
	return u, nil
}

// request is what is sent to an upstream: the submitter's request, less what
// concerns only the submitter's connection. Each attempt has its own body.
func (x *exchange) request(u *url.URL) *http.Request {
	out := &http.Request{
		Method:        x.r.Method,
		URL:           u,
		Host:          x.r.Host,
		Header:        make(http.Header, len(x.r.Header)+1),
		Body:          http.NoBody,
		ContentLength: x.body.Len(),
	}
	endToEnd(out.Header, x.r.Header)
	if out.ContentLength != 0 {
		out.Body = x.body.NewReader()
	}
	if len(x.r.Trailer) > 0 { // they follow a chunked body only
		out.Trailer = x.r.Trailer
		out.ContentLength = -1
	}
	out.Header.Del("Expect") // met here: the body is at hand
	for _, te := range x.r.Header["Te"] {
		if strings.EqualFold(strings.TrimSpace(te), "trailers") {
			out.Header.Set("Te", "trailers")
		}
	}
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = nil // or the transport would add its own
	}
	return out
}
