package http1

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Classes of bytes.
const (
	inName   = 1 << iota // of a token (RFC 9110, 5.6.2)
	inValue              // of a field value: visible, space, tab or non-ASCII
	inTarget             // of a path that net/url does not change
)

var classes = func() (c [256]byte) {
	for b := range c {
		if b >= ' ' && b != 0x7f || b == '\t' {
			c[b] = inValue
		}
		alphanumeric := '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if alphanumeric || strings.IndexByte("!#$%&'*+-.^_`|~", byte(b)) >= 0 {
			c[b] |= inName
		}
		if alphanumeric || strings.IndexByte("/-_.~", byte(b)) >= 0 {
			c[b] |= inTarget
		}
	}
	return c
}()

// IsToken reports whether a text is a token (RFC 9110, 5.6.2).
func IsToken(text []byte) bool { return len(text) > 0 && all(string(text), 0, inName) == len(text) }

// all returns the end of the run of bytes of a class that starts at i.
func all(text string, i int, class byte) int {
	for i < len(text) && classes[text[i]]&class != 0 {
		i++
	}
	return i
}

// plain parses a plain head: all lines end with CR LF, and all fields have a name, a colon and a value without control
// characters. ok is false for other heads.
func plain(text string, h http.Header) (first string, _ http.Header, fields []Field, ok bool) {
	lines := strings.Count(text, "\n") - 2
	if lines < 0 || lines > manyFields {
		return "", nil, nil, false
	}
	i := all(text, 0, inValue)
	first, fields = text[:i], make([]Field, lines)
	if h == nil {
		h = make(http.Header, lines)
	}
	for n := 0; ; n++ {
		if !strings.HasPrefix(text[i:], "\r\n") {
			return "", nil, nil, false
		}
		if i += 2; n == lines {
			return first, h, fields, text[i:] == "\r\n"
		}
		end := all(text, i, inName)
		if end == i || end == len(text) || text[end] != ':' {
			return "", nil, nil, false
		}
		f := &fields[n]
		f.Name, f.Key = text[i:end], textproto.CanonicalMIMEHeaderKey(text[i:end])
		i = all(text, end+1, inValue)
		f.value[0] = textproto.TrimString(text[end+1 : i])
		if f.nth = count(fields[:n], f.Key); f.nth == 0 { // a few comparisons are cheaper than a look into the map
			h[f.Key] = f.value[:]
		} else {
			h[f.Key] = append(h[f.Key], f.value[0])
		}
	}
}

// length returns the Content-Length of a plain head, or -1 if it has none. ok is false if net/http must decide.
func length(h http.Header) (n int64, ok bool) {
	values := h["Content-Length"]
	if len(values) == 0 {
		return -1, true
	}
	size, err := strconv.ParseUint(values[0], 10, 63)
	return int64(size), err == nil && len(values) == 1 && len(values[0]) <= 15
}

// plainRequest parses a plain HTTP/1.1 request for a plain path, with a Content-Length or without a body. It returns nil for other
// requests.
func plainRequest(ctx context.Context, text string, empty http.Header) (*http.Request, []Field) {
	first, h, fields, ok := plain(text, empty)
	line, isHTTP := strings.CutSuffix(first, " HTTP/1.1")
	method, target, _ := strings.Cut(line, " ")
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut:
	default:
		ok = false
	}
	n, counted := length(h)
	if !ok || !isHTTP || !counted || len(h["Host"]) != 1 || h["Transfer-Encoding"] != nil ||
		!strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || all(target, 0, inTarget) < len(target) {
		return nil, nil
	}
	r := http.Request{
		Method: method, URL: &url.URL{Path: target}, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Host: h["Host"][0], ContentLength: max(n, 0), Body: http.NoBody,
		Close: httpguts.HeaderValuesContainsToken(h["Connection"], "close"),
	}
	delete(h, "Host")
	return r.WithContext(ctx), fields
}

// plainResponse parses a plain HTTP/1.1 response with a body, a Content-Length or chunked encoding. It returns nil for other
// responses.
func plainResponse(text string) (*http.Response, []Field) {
	first, h, fields, ok := plain(text, nil)
	status, isHTTP := strings.CutPrefix(first, "HTTP/1.1 ")
	n, counted := length(h)
	coding := h["Transfer-Encoding"]
	chunked := n < 0 && len(coding) == 1 && coding[0] == "chunked"
	if !ok || !isHTTP || !counted || h["Trailer"] != nil || !chunked && (n < 0 || coding != nil) || len(status) < 4 || status[3] != ' ' {
		return nil, nil
	}
	code, err := strconv.ParseUint(status[:3], 10, 16)
	if err != nil || code < 200 || code == http.StatusNoContent || code == http.StatusNotModified {
		return nil, nil
	}
	if chunked {
		delete(h, "Transfer-Encoding")
	}
	return &http.Response{
		Status: status, StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, ContentLength: n, TransferEncoding: coding,
		Close: httpguts.HeaderValuesContainsToken(h["Connection"], "close"),
	}, fields
}
