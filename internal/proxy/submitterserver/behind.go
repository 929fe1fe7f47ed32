package submitterserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// handedConn is a connection that net/http's server serves.
type handedConn struct {
	net.Conn
	server *Server
	hand   func(net.Conn)
	seen   *bytes.Reader // bytes that were read before the hand-over
	read   atomic.Bool   // net/http has read bytes
	wrote  atomic.Bool   // net/http has written bytes
}

// newHanded returns a handedConn. seen are the bytes that were already read from nc.
func (s *Server) newHanded(nc net.Conn, seen []byte, hand func(net.Conn)) *handedConn {
	return &handedConn{Conn: nc, server: s, hand: hand, seen: bytes.NewReader(seen)}
}

func (c *handedConn) Read(p []byte) (n int, err error) {
	if c.seen.Len() > 0 {
		n, err = c.seen.Read(p)
	} else {
		n, err = c.Conn.Read(p)
	}
	if n > 0 {
		c.read.Store(true)
	}
	return n, err
}

func (c *handedConn) Write(p []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(p)
}

// CloseWrite closes the sending side if the connection supports that.
func (c *handedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection. It lingers before if the submitter may still be sending its request and gets a response:
// net/http refuses some requests before it has read them completely.
func (c *handedConn) Close() error {
	c.server.taken(c)
	if !c.wrote.Swap(false) || !c.read.Load() {
		return c.Conn.Close()
	}
	c.server.lingers(c.Conn, true)
	go func() {
		linger(c.Conn)
		_ = c.Conn.Close()
		c.server.lingers(c.Conn, false)
	}()
	return nil
}

// Behind returns the handler of net/http's server, which passes HTTP/2 requests to h. For HTTP/1, net/http only parses the
// heads that are not plain; then the connection is taken back. net/http would read a chunked body until a buffer is
// full, so pieces would neither be forwarded nor count for deadlines when they arrive.
func (s *Server) Behind(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(handedKey{}).(*handedConn)
		if ok && r.ProtoMajor == 1 && s.takeBack(conn, w, r) {
			return
		}
		s.taken(conn)
		if ok && r.ProtoMajor == 1 {
			defer func() { conn.read.Store(w.Header().Get("Connection") == "close") }() // otherwise the request was read whole
		}
		h.ServeHTTP(w, r)
	})
}

// takeBack takes a connection back from net/http after it has parsed the head of request r. It returns false if that is
// impossible.
func (s *Server) takeBack(from *handedConn, w http.ResponseWriter, r *http.Request) bool {
	tcp, ok := from.Conn.(tcpConn)
	lazy := lazyconn.New(from.Conn, s.buffers)
	if !ok || !lazy.Lazy() {
		return false
	}
	_, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	rest, _ := buffered.Peek(buffered.Reader.Buffered()) // does not fail
	more, _ := io.ReadAll(from.seen)                     // does not fail
	lazy.Unread(slices.Concat(rest, more))
	c := s.newConn(lazy, tcp, from.hand)
	s.taken(from) // after newConn, so that a shutdown never misses the connection
	r = r.WithContext(c.ctx)
	c.prepare(r, nil)
	if r.ContentLength < 0 || r.Header["Transfer-Encoding"] != nil { // the head may have had a Content-Length, too, which net/http removes
		c.response.close = true
	}
	go c.serve(r)
	return true
}

type handedKey struct{}

// ConnContext is the ConnContext of net/http's server. It lets Behind find the connection.
func (s *Server) ConnContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, handedKey{}, nc)
}

const (
	// lingerTime is the maximum time for which a connection lingers before it is closed.
	lingerTime = 30 * time.Second
	// lingerIdle is the time without a byte after which it is closed earlier.
	lingerIdle = 5 * time.Second
)

// linger closes the sending side of a connection and drops received bytes until the submitter closes the
// connection. Unread bytes would reset the connection when it is closed, and the submitter would lose the
// response.
func linger(c net.Conn) {
	_ = closeWrite(c) // fails only on a closed connection, as the read will
	until := time.Now().Add(lingerTime)
	room := outs.Get().(*[outSize]byte)
	defer outs.Put(room)
	for {
		idle := time.Now().Add(lingerIdle)
		if idle.After(until) {
			idle = until
		}
		_ = c.SetReadDeadline(idle) // fails only on a closed connection
		if _, err := c.Read(room[:]); err != nil {
			return
		}
	}
}

// closeWrite closes the sending side of a connection if the connection supports that.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
