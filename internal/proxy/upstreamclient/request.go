package upstreamclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/settings"
)

// Request is a request to one upstream.
type Request struct {
	// Address is the upstream's address: host:port or unix:PATH. Host is the Host header; if it is empty, the
	// header is derived from the address.
	Address, Host string
	// Method and Target go unchanged into the request line.
	Method, Target string
	// Header is sent unchanged, except for framing fields. Received has the order and case of the fields that
	// were received.
	Header   http.Header
	Received []http1.Field

	// Whole is the body if all of it was received. Otherwise the body is read from Body, possibly still
	// after the exchange has ended. Length is its length; with -1 it is sent in chunks.
	Whole  []byte
	Body   io.Reader
	Length int64

	// Fresh requires a new connection.
	Fresh bool
	// ConnectTimeout is the timeout of a dial, including its wait for maxDials. Deadline bounds the time up to the
	// head of the response. Both are required.
	ConnectTimeout time.Duration
	Deadline       time.Time
	// With a large body, FirstByte and Limit replace Deadline: the head must arrive within FirstByte after the
	// upstream has taken the last piece, and before Limit unless that is zero. Required unless AtOnce.
	FirstByte time.Duration
	Limit     time.Time

	// Withdrawal lets another goroutine end the request. Required.
	Withdrawal *Withdrawal
	// Interim receives each interim response (1xx) except 100 Continue; nil ignores them.
	Interim Interim
}

// Interim receives interim responses.
type Interim interface {
	Interim(status int, h http.Header, received http1.Head)
}

// ErrRequest: the request cannot be written as HTTP/1.1. Nothing was sent.
var ErrRequest = errors.New("the request cannot be sent")

// AtOnce reports whether the whole body is sent before Do reads the response. Then the body is
// not used after Do has returned.
func (r *Request) AtOnce() bool { return r.Body == nil && len(r.Whole) <= inline }

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
	b = append(b, " HTTP/1.1\r\n"...)
	length, coding := r.framing()
	b, invalid := http1.Append(b, r.Header, r.Received,
		[2]string{"Host", host}, [2]string{"Content-Length", length}, [2]string{"Transfer-Encoding", coding}, [2]string{"Trailer"})
	if invalid != "" {
		return nil, fmt.Errorf("%w: header %q", ErrRequest, invalid)
	}
	return append(b, "\r\n"...), nil
}

// hostOf returns the Host header for an address. Many servers reject the path of a socket and the zone of an
// IPv6 address (RFC 6874), which have a meaning only on this machine.
func hostOf(address string) string {
	if _, local := settings.UnixPath(address); local {
		return "localhost"
	}
	if begin, end := strings.IndexByte(address, '%'), strings.IndexByte(address, ']'); begin >= 0 && begin < end {
		return address[:begin] + address[end:]
	}
	return address
}

// framing returns the values of Content-Length and Transfer-Encoding.
func (r *Request) framing() (length, coding string) {
	n := int64(len(r.Whole))
	if r.Body != nil {
		n = r.Length
	}
	switch {
	case n < 0:
		return "", "chunked"
	case n == 0 && r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch:
		return "", ""
	}
	var text [20]byte
	digits := strconv.AppendInt(text[:0], n, 10)
	if received := r.Header["Content-Length"]; len(received) == 1 && received[0] == string(digits) {
		return received[0], "" // without an allocation
	}
	return string(digits), ""
}

// ends reports whether a character would end the request target or the request line.
func ends(r rune) bool { return r <= ' ' || r == 0x7f }
