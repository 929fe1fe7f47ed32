package submitterserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// handedConn is a connection that net/http's server serves.
type handedConn struct {
	net.Conn
	server *Server
	in     io.Reader // the bytes that were read before the hand-over, then the connection
}

// newHanded returns a handedConn. seen are the bytes that were already read from nc.
func (s *Server) newHanded(nc net.Conn, seen []byte) *handedConn {
	return &handedConn{Conn: nc, server: s, in: io.MultiReader(bytes.NewReader(seen), nc)}
}

func (c *handedConn) Read(p []byte) (n int, err error) { return c.in.Read(p) }

// CloseWrite closes the sending side if the connection supports that.
func (c *handedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection.
func (c *handedConn) Close() error {
	c.server.handOverEnded(c)
	return c.Conn.Close()
}

// Wrap returns the handler of net/http's server. In its shutdown, that server drops requests that it has read but not
// passed to its handler, so the handler reports that a connection is served.
func (s *Server) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(handedKey{}).(*handedConn)
		s.handOverEnded(conn)
		h.ServeHTTP(w, r)
	})
}

type handedKey struct{}

// ConnContext is the ConnContext of net/http's server. It lets Wrap find the connection.
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
