package upstreamclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/settings"
)

// Request is a request to one upstream.
type Request struct {
	// Address is the upstream's, host:port or the path of a socket. The Host header is Host,
	// or made of the address where that is empty.
	Address, Host string
	// Method and Target are put on the request line as they are.
	Method, Target string
	// Header is sent as it is. It must not frame the body.
	Header http.Header

	// Whole is the body, if all of it is at hand. Otherwise it is read from Body, also for
	// a while after the exchange has ended; Length is its length, -1 unknown: it is sent in chunks.
	Whole  []byte
	Body   io.Reader
	Length int64

	// Fresh asks for a new connection.
	Fresh bool
	// ConnectTimeout bounds a dial, with the wait for its turn; Deadline everything up to the head of the answer. Required.
	ConnectTimeout time.Duration
	Deadline       time.Time

	// Withdrawal ends the request from outside. Required.
	Withdrawal *Withdrawal
	// Interim gets each interim answer (1xx), but for 100 Continue; nil is nobody.
	Interim Interim
}

// Interim takes interim answers.
type Interim interface {
	Interim(status int, h http.Header)
}

// ErrRequest is a request that cannot be written as HTTP/1.1. Nothing of it was sent.
var ErrRequest = errors.New("the request cannot be sent")

// AtOnce reports whether all of the body is sent before Do reads an answer. Then nothing of
// it is used after Do has returned.
func (r *Request) AtOnce() bool { return r.Body == nil && len(r.Whole) <= inline }

// appendHead appends the request's head to b.
func (r *Request) appendHead(b []byte) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(r.Method) { // a method is a token, too
		return nil, fmt.Errorf("%w: method %q", ErrRequest, r.Method)
	}
	if r.Target == "" || strings.ContainsFunc(r.Target, ends) {
		return nil, fmt.Errorf("%w: target %q", ErrRequest, r.Target)
	}
	host := r.Host
	if host == "" {
		host = hostOf(r.Address)
	}
	if !httpguts.ValidHostHeader(host) {
		return nil, fmt.Errorf("%w: host %q", ErrRequest, host)
	}
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	b, err := appendFields(r.appendFraming(b), r.Header)
	return append(b, "\r\n"...), err
}

// hostOf returns the Host header for an address. Neither the path of a socket nor the zone of an IPv6
// address (RFC 6874) means anything to the other side, and many servers refuse them.
func hostOf(address string) string {
	if _, local := settings.UnixPath(address); local {
		return "localhost"
	}
	if begin, end := strings.IndexByte(address, '%'), strings.IndexByte(address, ']'); begin >= 0 && begin < end {
		return address[:begin] + address[end:]
	}
	return address
}

// appendFraming appends the headers that tell where the body ends.
func (r *Request) appendFraming(b []byte) []byte {
	length := int64(len(r.Whole))
	if r.Body != nil {
		length = r.Length
	}
	switch {
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case length > 0, r.Method == http.MethodPost, r.Method == http.MethodPut, r.Method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	}
	return b
}

// appendFields appends header fields. Framing is not the caller's.
func appendFields(b []byte, h http.Header) ([]byte, error) {
	for name, values := range h {
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%w: header name %q", ErrRequest, name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, fmt.Errorf("%w: a value of header %s", ErrRequest, name)
			}
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, v...)
			b = append(b, "\r\n"...)
		}
	}
	return b, nil
}

// ends reports whether a character ends a request's target, or the request line.
func ends(r rune) bool { return r <= ' ' || r == 0x7f }
