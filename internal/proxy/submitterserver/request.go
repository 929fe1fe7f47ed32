package submitterserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// maxHead is how long the head of a plain request may be, in bytes. A head that
// does not come at once, and whole, is net/http's to wait for.
const maxHead = 8 << 10

// plain reports whether a request can be served here: HTTP/1.1 with one valid
// host, a body with a length or none, and no header that is for the server.
func plain(r *http.Request) bool {
	switch {
	case r.ProtoMajor != 1 || r.ProtoMinor != 1:
		return false
	case r.Host == "" || !httpguts.ValidHostHeader(r.Host):
		return false
	case r.Method == http.MethodHead || r.Method == http.MethodConnect:
		return false
	case !strings.HasPrefix(r.RequestURI, "/"): // an absolute one leaves nothing of the Host header to look at
		return false
	case r.ContentLength < 0: // a body in chunks
		return false
	}
	for name, values := range r.Header {
		switch name {
		case "Expect", "Upgrade", "Te", "Trailer", "Http2-Settings":
			return false
		case "Connection":
			if len(values) != 1 || !strings.EqualFold(values[0], "keep-alive") {
				return false
			}
		}
		if strings.Contains(name, " ") { // which http.ReadRequest lets pass, unlike all else that is not valid
			return false
		}
	}
	return true
}

// body is a request's body of known length.
type body struct {
	mu   sync.Mutex
	conn *conn
	left int64 // bytes that were not read yet
}

// Read reads the body. The connection's buffer is given back with the last byte.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.left == 0:
		return 0, io.EOF
	case int64(len(p)) > b.left:
		p = p[:b.left]
	}
	waits := b.conn.In.Buffered() == 0
	if waits {
		b.conn.beginRead()
	}
	n, err := b.conn.In.Read(p)
	if waits {
		b.conn.endRead()
	}
	b.left -= int64(n)
	switch {
	case b.left == 0:
		b.conn.bodyRead()
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close leaves the connection as it is.
func (b *body) Close() error { return nil }

// unread reports whether some of the body was not read. A read that is under way, and
// later ones, end with the connection.
func (b *body) unread() bool {
	if !b.mu.TryLock() {
		return true
	}
	defer b.mu.Unlock()
	return b.left > 0
}

// tcpConn is what a TCP connection can do.
type tcpConn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}
