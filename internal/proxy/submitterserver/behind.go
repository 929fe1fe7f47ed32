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
	seen   *bytes.Reader // what was read of the connection before
	read   atomic.Bool   // something was received
	wrote  atomic.Bool   // something was sent
}

// newHanded returns a connection of which some bytes were read already.
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

// CloseWrite closes the sending side, where that is possible alone.
func (c *handedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection, after a while if the submitter gets a response and may still be sending
// its request: net/http refuses some requests before it has read all of them.
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

// Behind makes of h the handler of net/http's server. That server only reads and checks the heads of HTTP/1 that are not
// plain: their connections come back here, with the request. net/http would read chunks until a buffer is full, so that
// pieces would neither be forwarded nor count for deadlines when they arrive.
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

// takeBack takes a connection back from net/http, which has read the head of a request. It reports whether that is possible.
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
	rest, _ := buffered.Peek(buffered.Reader.Buffered()) // there are as many
	more, _ := io.ReadAll(from.seen)                     // memory does not fail
	lazy.Unread(slices.Concat(rest, more))
	c := s.newConn(lazy, tcp, from.hand)
	s.taken(from) // after newConn: a shutdown must see the connection in one place or the other
	r = r.WithContext(c.ctx)
	c.prepare(r, nil)
	if r.ContentLength < 0 || r.Header["Transfer-Encoding"] != nil { // net/http does not say whether the head had a length, too
		c.response.close = true
	}
	go c.serve(r)
	return true
}

type handedKey struct{}

// ConnContext is for the same field of net/http's server: it lets Behind find the connection.
func (s *Server) ConnContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, handedKey{}, nc)
}

// How long what a submitter still sends is dropped before its connection is closed: in all, and
// since the last byte.
const (
	lingerTime = 30 * time.Second
	lingerIdle = 5 * time.Second
)

// linger ends the sending side of a connection, and drops what arrives until the submitter closes the
// connection. Bytes that arrive on a closed connection, or that nobody has read when it is closed, reset it,
// and the submitter loses the response.
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

// closeWrite ends the sending side of a connection, if that is possible alone.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
