package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

const (
	// lineCost is what a line of a head takes in memory besides its bytes.
	lineCost = 128
	// freeHead is how much of each head counts nowhere. Most heads take less.
	freeHead = 4 << 10
	// retryHead is when a head that found no room may come again.
	retryHead = time.Second
	// readLast bounds how long the rest of a head that found no room is read.
	readLast = 500 * time.Millisecond
)

// headCost is what the head of a request takes in memory, in bytes.
func headCost(h http.Header) (bytes int64) {
	for name, values := range h {
		for _, v := range values {
			bytes += int64(len(name)+len(v)) + lineCost
		}
	}
	return bytes
}

// Heads bounds the memory of all HTTP/1 heads that have begun to arrive and have not
// ended. A connection whose head finds no room is told so with a 503, and closed. It
// is safe for concurrent use.
//
// The part of an HTTP/2 connection's head that has arrived is bounded by itself: there
// is one at a time. Plain connections hold nothing of a head before it has come whole.
type Heads struct {
	most    int64
	used    atomic.Int64
	refused atomic.Uint64
}

// NewHeads returns a bound of so many bytes.
func NewHeads(bytes int64) *Heads { return &Heads{most: bytes} }

// Used returns the bytes that such heads take now, beyond 4 KiB of each.
func (h *Heads) Used() int64 { return h.used.Load() }

// Refused returns how many heads found no room.
func (h *Heads) Refused() uint64 { return h.refused.Load() }

func (h *Heads) take(n int64) bool {
	if h.used.Add(n) <= h.most {
		return true
	}
	h.used.Add(-n)
	h.refused.Add(1)
	return false
}

// head is the head that arrives on one connection, if one does.
type head struct {
	all *Heads

	mu      sync.Mutex
	preface int   // how many bytes of HTTP/2's preface came; -1 if others did
	http2   bool  // all of them did: nothing counts
	whole   bool  // the head has come, and its request is served
	cost    int64 // of what has come of the head
	counted int64 // of that, in all
}

// came takes in bytes that came on the connection, and reports whether there is room.
func (h *head) came(p []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.preface >= 0 && !h.http2 {
		h.preface, h.http2 = prefaced(h.preface, p)
	}
	if h.http2 || h.whole {
		return true
	}
	h.cost += int64(len(p) + lineCost*bytes.Count(p, []byte{'\n'}))
	more := h.cost - freeHead - h.counted
	if more <= 0 {
		return true
	}
	if !h.all.take(more) {
		return false
	}
	h.counted += more
	return true
}

// prefaced takes in bytes of a connection on which so many of HTTP/2's preface have come.
func prefaced(came int, p []byte) (now int, all bool) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	n := min(len(p), len(preface)-came)
	if string(p[:n]) != preface[came:came+n] {
		return -1, false
	}
	return came + n, came+n == len(preface)
}

// turn is told what the connection does next.
func (h *head) turn(state http.ConnState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.used.Add(-h.counted)
	h.cost, h.counted = 0, 0
	h.whole = state != http.StateIdle && state != http.StateNew
}

// errRefused ends the reading of a head that found no room. To an error of a read
// net/http adds no answer of its own; to the end of a connection within a head it adds a 400.
var errRefused = &net.OpError{Op: "read", Net: "tcp", Err: intake.ErrNoRoom}

// read ends a read of c that brought p. Where there is no room, it answers, and reads
// what still comes: closing at once would reset the connection and lose the answer.
func (h *head) read(c net.Conn, p []byte, err error) (int, error) {
	if h.came(p) {
		return len(p), err
	}
	problem := record.ProblemOf(intake.ErrNoRoom)
	body := problem.Body()
	response := http.Response{
		StatusCode: problem.Status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Close: true,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
	problem.SetHeaders(response.Header, retryHead)
	_ = c.SetWriteDeadline(time.Now().Add(retryHead)) // if this fails, so does the write
	if response.Write(c) != nil {
		return 0, errRefused // the submitter is gone
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(readLast)) // if this fails, so does reading
		_, _ = io.CopyN(io.Discard, c, 1<<20)
	}
	return 0, errRefused
}

// headListener is a listener whose connections count the heads that arrive.
type headListener struct {
	net.Listener
	heads *Heads
}

func (l headListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(tcpConn); ok {
		return &headTCP{tcpConn: tcp, head: head{all: l.heads}}, nil
	}
	return &headConn{Conn: c, head: head{all: l.heads}}, nil
}

// headState is the server's ConnState.
func headState(c net.Conn, state http.ConnState) {
	switch c := c.(type) {
	case *headTCP:
		c.head.turn(state)
	case *headConn:
		c.head.turn(state)
	}
}

// tcpConn is what a server uses of a TCP connection.
type tcpConn interface {
	net.Conn
	io.ReaderFrom
	CloseWrite() error
	SetLinger(seconds int) error
}

type headTCP struct {
	tcpConn
	head head
}

func (c *headTCP) Read(p []byte) (int, error) {
	n, err := c.tcpConn.Read(p)
	return c.head.read(c.tcpConn, p[:n], err)
}

func (c *headTCP) Close() error {
	defer c.head.turn(http.StateClosed)
	return c.tcpConn.Close()
}

type headConn struct {
	net.Conn
	head head
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return c.head.read(c.Conn, p[:n], err)
}

func (c *headConn) Close() error {
	defer c.head.turn(http.StateClosed)
	return c.Conn.Close()
}
