package submitterserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/record"
)

// maxHead is the size of a connection's buffer, in bytes. Most heads fit into it.
const maxHead = 8 << 10

// invalid returns why a request is refused, or nil. err is the error of the parser. The same requests are refused as by
// net/http's server, with the same status.
func invalid(r *http.Request, head *http1.Head, err error) error {
	switch {
	case err != nil && (strings.HasPrefix(err.Error(), "unsupported transfer encoding") || strings.HasPrefix(err.Error(), "too many transfer encodings")):
		return fmt.Errorf("%w: %w", record.ErrCoding, err)
	case err != nil:
		return fmt.Errorf("%w: %w", record.ErrHead, err)
	case r.ProtoMajor != 1:
		return fmt.Errorf("%w: %s", record.ErrVersion, r.Proto)
	case !head.HasHost && r.ProtoMinor > 0 && r.Method != http.MethodConnect:
		return fmt.Errorf("%w: there is no Host header", record.ErrHead)
	case head.HasHost && !httpguts.ValidHostHeader(head.Host):
		return fmt.Errorf("%w: the Host header is malformed", record.ErrHead)
	case head.Plain:
		return nil
	}
	for name := range r.Header {
		if strings.Contains(name, " ") { // http.ReadRequest accepts such names, but no other invalid ones
			return fmt.Errorf("%w: the name of a field contains a space", record.ErrHead)
		}
	}
	return nil
}

// has reports whether a list contains a word. Like net/http, it accepts spaces as separators, too.
func has(list, word string) bool {
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

// expects reports whether the submitter may wait for 100 Continue before it sends its body.
func expects(r *http.Request) bool {
	return r.Header["Expect"] != nil && has(r.Header.Get("Expect"), "100-continue")
}

// body is the body of a request.
type body struct {
	mu      sync.Mutex
	conn    *conn
	left    int64 // unread bytes of a body with a Content-Length; 1 for a chunked body up to its end
	chunks  *http1.Chunks
	expects bool // 100 Continue must be sent
}

// Read reads the body. The connection's buffer is released after the last byte.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.expects {
		b.expects = false
		_, _ = io.WriteString(b.conn, "HTTP/1.1 100 Continue\r\n\r\n") // if this fails, so does the read
	}
	waits := b.conn.In.Buffered() == 0 || b.chunks != nil
	if waits {
		b.conn.turn(receiving, reading)
	}
	n, err := b.read(p)
	if waits {
		b.conn.turn(reading, receiving)
	}
	switch {
	case b.left == 0:
		b.conn.bodyRead()
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *body) read(p []byte) (int, error) {
	if b.chunks != nil {
		n, err := b.chunks.Read(p)
		if err == io.EOF { //nolint:errorlint // the end of the body, not of the connection
			b.left = 0
		}
		return n, err
	}
	n, err := b.conn.In.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Ready reports whether the next Read will not block.
func (b *body) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left == 0 || b.chunks == nil && !b.expects && b.conn.In.Buffered() > 0
}

// Close does nothing.
func (b *body) Close() error { return nil }

// unread reports whether a part of the body was not read. Current and later reads end with the
// connection.
func (b *body) unread() bool {
	if !b.mu.TryLock() {
		return true
	}
	defer b.mu.Unlock()
	return b.left > 0
}

// tcpConn is a connection over TCP or a Unix socket.
type tcpConn interface {
	net.Conn
	CloseWrite() error
}
