package http1

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// errRest: net/http found the end of the head at another place than Size did.
var errRest = errors.New("malformed head: its end is ambiguous")

// Request parses the head of a request. text is the whole head; the caller reads the body. If the head is plain, empty becomes
// the header, unless it is nil.
func Request(ctx context.Context, text string, empty http.Header) (*http.Request, Head, error) {
	if r, fields := plainRequest(ctx, text, empty); r != nil {
		return r, Head{Fields: fields, Host: r.Host, HasHost: true, Memory: memory(text, len(fields)+2), Plain: true}, nil
	}
	clear(empty)
	fields, rest := split(text, "Trailer")
	in := bufio.NewReader(strings.NewReader(rest))
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil, Head{}, err
	}
	received, err := unchanged(text, in, r.Header)
	return r.WithContext(ctx), Head{Fields: fields, Host: received.Get("Host"), HasHost: len(received["Host"]) > 0, Memory: memory(text, strings.Count(text, "\n"))}, err
}

// Response parses the head of a response to a request with this method. text is the whole head. The caller reads the
// body; ContentLength, TransferEncoding and HasBody determine its end.
func Response(text, method string) (*http.Response, Head, error) {
	if method != http.MethodHead {
		if r, fields := plainResponse(text); r != nil {
			return r, Head{Reason: r.Status[len("200 "):], Fields: fields, Memory: memory(text, len(fields)+2), Plain: true}, nil
		}
	}
	fields, rest := split(text, "Trailer")
	in := bufio.NewReader(strings.NewReader(rest))
	r, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return nil, Head{}, err
	}
	received, err := unchanged(text, in, r.Header)
	if len(r.TransferEncoding) > 0 {
		r.Trailer = trailer(received["Trailer"])
	}
	_, reason, _ := strings.Cut(r.Status, " ")
	return r, Head{Reason: reason, Fields: fields, Memory: memory(text, strings.Count(text, "\n"))}, err
}

// unchanged reverts net/http's changes to a header: net/http adds Cache-Control if there is Pragma, and removes
// Connection from a response that closes the connection. It returns the header as received. Its Trailer fields were
// hidden from net/http, which rejects lists with certain names.
func unchanged(text string, in *bufio.Reader, h http.Header) (received textproto.MIMEHeader, err error) {
	if in.Buffered() > 0 {
		return nil, errRest
	}
	lines := textproto.NewReader(bufio.NewReader(strings.NewReader(text)))
	if _, err := lines.ReadLine(); err != nil {
		return nil, err
	}
	if received, err = lines.ReadMIMEHeader(); err != nil {
		return nil, err
	}
	for _, key := range []string{"Cache-Control", "Connection"} {
		if values := received[key]; values != nil {
			h[key] = values
		} else {
			delete(h, key)
		}
	}
	return received, nil
}

// trailer returns the fields that Trailer headers announce, without values.
func trailer(lists []string) (t http.Header) {
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); !httpguts.ValidTrailerHeader(name) || name == "" {
				continue // not forwarded
			}
			if t == nil {
				t = make(http.Header)
			}
			t[name] = nil
		}
	}
	return t
}

// HasBody reports whether a response has a body.
func HasBody(r *http.Response, method string) bool {
	switch {
	case method == http.MethodHead, r.StatusCode < 200, r.StatusCode == http.StatusNoContent, r.StatusCode == http.StatusNotModified:
		return false
	}
	return r.ContentLength != 0
}
