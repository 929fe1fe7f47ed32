package submitterserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// handedConn is a connection that net/http's server serves.
type handedConn struct {
	net.Conn
	in     io.Reader // what was read of the connection before, and what follows
	server *Server
	remote string
	unread atomic.Bool // some of a request has arrived, and not all of it was read
	wrote  atomic.Bool // something was written since the last request began
}

// newHanded returns a connection of which some bytes were read already.
func (s *Server) newHanded(nc net.Conn, seen []byte, remote string) *handedConn {
	return &handedConn{Conn: nc, in: io.MultiReader(bytes.NewReader(seen), nc), server: s, remote: remote}
}

func (c *handedConn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 {
		c.unread.Store(true)
	}
	return n, err
}

func (c *handedConn) Write(p []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(p)
}

// CloseWrite implements tcpConn, where the connection does.
func (c *handedConn) CloseWrite() error { return closeWrite(c.Conn) }

// SetLinger implements tcpConn, where the connection does. A handler that has the next Close reset the connection
// wants it at once.
func (c *handedConn) SetLinger(seconds int) error {
	c.unread.Store(false)
	if tcp, ok := c.Conn.(tcpConn); ok {
		return tcp.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// Close closes the connection, after a while if the submitter gets a response and may still be sending
// its request. net/http itself refuses some requests before it has read all of them.
func (c *handedConn) Close() error {
	c.server.taken(c.remote)
	if !c.wrote.Swap(false) || !c.unread.Load() {
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

// Behind makes of h the handler of net/http's server. In its shutdown, that server drops each request that it has
// read and not yet given to its handler.
func (s *Server) Behind(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.taken(r.RemoteAddr)
		conn, ok := r.Context().Value(handedKey{}).(*handedConn)
		if !ok || r.ProtoMajor > 1 {
			h.ServeHTTP(w, r)
			return
		}
		b := &endingBody{ReadCloser: r.Body}
		if b.ended.Store(r.Body == http.NoBody); !b.ended.Load() {
			r = r.WithContext(r.Context()) // net/http closes the connection after a malformed body only if it finds its own body in r
			r.Body = b
		}
		conn.wrote.Store(false)
		aborted := true
		defer func() { conn.unread.Store(!b.ended.Load() && !aborted) }()
		h.ServeHTTP(w, r)
		aborted = false
	})
}

type handedKey struct{}

// ConnContext is for the same field of net/http's server: it lets Behind find the connection.
func (s *Server) ConnContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, handedKey{}, nc)
}

// endingBody notes whether a body was read to its end.
type endingBody struct {
	io.ReadCloser
	ended atomic.Bool
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
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
