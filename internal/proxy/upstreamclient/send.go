package upstreamclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"example.org/pilotfish/internal/intake"
)

// inline is the largest body that the caller's goroutine sends, together with
// the head: the write does not wait for an upstream that answers without reading.
const inline = intake.AtOnce

// pieces are buffers for heads, and for bodies on their way.
var pieces = sync.Pool{New: func() any { return new([2 * inline]byte) }}

// BodyError is a body that could not be read.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "reading the body: " + e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// sending is a request on its way to an upstream.
type sending struct {
	conn    *conn
	written atomic.Int64              // bytes, but for chunks
	body    atomic.Pointer[BodyError] // what was wrong with the body
	ended   chan struct{}             // closed when the sending has ended; nil if the caller's goroutine sends
	err     error                     // why not all was sent; to be read when the sending has ended

	message []byte            // that the caller's goroutine sends, in piece
	piece   *[2 * inline]byte // nil once it was sent
}

// start makes the request ready to be sent. A goroutine of its own sends a body that a socket
// may not take at once: an early answer is read meanwhile.
func (s *sending) start(cn *conn, r *Request) error {
	piece, ok := pieces.Get().(*[2 * inline]byte)
	if !ok {
		panic("BUG: upstreamclient: the pool of pieces holds something else")
	}
	head, err := r.appendHead(piece[:0])
	if err != nil {
		pieces.Put(piece)
		return err
	}
	s.conn = cn
	if r.AtOnce() {
		s.message, s.piece = append(head, r.Whole...), piece
		return nil
	}
	s.ended = make(chan struct{})
	copied := *r // so that r itself need not outlive the call
	go s.rest(&copied, piece, head)
	return nil
}

// Sent implements lazyconn.Sender.
func (s *sending) Sent(n int, err error) {
	s.written.Store(int64(n))
	s.err = err
	s.release()
}

// release gives the memory of the message back.
func (s *sending) release() {
	pieces.Put(s.piece)
	s.message, s.piece = nil, nil
}

// rest sends a request with a larger body.
func (s *sending) rest(r *Request, piece *[2 * inline]byte, head []byte) {
	defer close(s.ended)
	defer pieces.Put(piece)
	if s.err = s.write(head); s.err == nil {
		s.err = s.sendBody(r, piece[:])
	}
}

// over reports whether the sending has ended.
func (s *sending) over() bool {
	if s.ended == nil {
		return true
	}
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// write writes bytes as they are.
func (s *sending) write(p []byte) error {
	s.written.Add(int64(len(p))) // before, for the answer may be quicker than the return from Write
	n, err := s.conn.Write(p)
	s.written.Add(int64(n - len(p)))
	return err
}

// sendBody sends what follows the head. piece is a buffer to use.
func (s *sending) sendBody(r *Request, piece []byte) error {
	if r.Body == nil {
		return s.write(r.Whole)
	}
	if r.Length >= 0 {
		return s.readBody(r, piece, s.write)
	}
	if err := s.readBody(r, piece, s.chunk); err != nil {
		return err
	}
	return s.write([]byte("0\r\n\r\n"))
}

// chunk sends one chunk.
func (s *sending) chunk(p []byte) error {
	size := append(strconv.AppendInt(nil, int64(len(p)), 16), "\r\n"...)
	parts := net.Buffers{size, p, []byte("\r\n")}
	_, err := parts.WriteTo(s.conn.Conn.Conn) // the head was counted
	return err
}

// readBody reads the body and passes its pieces on.
func (s *sending) readBody(r *Request, piece []byte, pass func(p []byte) error) error {
	left := r.Length
	for {
		n, err := r.Body.Read(piece)
		if r.Length >= 0 && int64(n) > left {
			err = fmt.Errorf("it is longer than %d bytes", r.Length)
		} else if n > 0 {
			left -= int64(n)
			if failed := pass(piece[:n]); failed != nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF) && (r.Length < 0 || left == 0):
			return nil
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		case err == nil:
			continue
		}
		return s.failed(err)
	}
}

// failed ends the exchange because of its body: the upstream would wait for the rest.
func (s *sending) failed(err error) error {
	failed := &BodyError{Err: err}
	s.body.Store(failed)
	s.conn.interrupt()
	return failed
}
