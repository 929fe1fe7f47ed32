package upstreamclient

import (
	"context"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"

	"example.org/pilotfish/internal/intake"
)

// inline is the size of the largest body that the caller's goroutine sends, together with
// the head. The socket buffer takes that much at once, so the write does not block.
const inline = intake.AtOnce

// wholePiece is the size of the pieces in which a received body is written.
const wholePiece = 256 << 10

// pieces are buffers for heads, small bodies and pieces of bodies.
var pieces = sync.Pool{New: func() any { return new([2 * inline]byte) }}

// BodyError is the error of reading the body from the submitter.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "reading the body: " + e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// sending is the state of sending a request.
type sending struct {
	conn    *conn
	written atomic.Int64              // bytes
	body    atomic.Pointer[BodyError] // the error of reading the body
	ended   chan struct{}             // closed when the sending has ended; nil if the caller's goroutine sends
	err     error                     // why not all was sent; valid when the sending has ended
	clock   *clock                    // nil if the caller's goroutine sends

	message []byte            // the request that the caller's goroutine sends; in piece
	piece   *[2 * inline]byte // nil after the request was sent, or if another goroutine sends it
}

// start prepares the request. A body that the socket buffer may not take at once is sent by another
// goroutine, so that an early response can be read at the same time.
func (s *sending) start(ctx context.Context, cn *conn, r *Request) error {
	piece := pieces.Get().(*[2 * inline]byte)
	head, err := r.appendHead(piece[:0])
	s.conn, s.piece = cn, piece
	switch {
	case err != nil:
		return err
	case r.AtOnce():
		s.message = append(head, r.Whole...)
		return nil
	}
	s.ended, s.piece, s.clock = make(chan struct{}), nil, newClock(ctx, cn, r)
	copied := *r // r may not outlive the call
	go s.rest(&copied, piece, head)
	return nil
}

func (s *sending) Sent(n int, err error) {
	s.written.Store(int64(n))
	s.err = err
	s.release()
}

// release returns the buffer of the message to the pool.
func (s *sending) release() {
	pieces.Put(s.piece)
	s.message, s.piece = nil, nil
}

// rest sends a request with a large body.
func (s *sending) rest(r *Request, piece *[2 * inline]byte, head []byte) {
	defer close(s.ended)
	defer pieces.Put(piece)
	if _, s.err = s.Write(head); s.err == nil {
		s.err = s.sendBody(r, piece[:])
	}
	if s.err == nil {
		s.clock.restart()
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

// Write writes to the connection.
func (s *sending) Write(p []byte) (int, error) {
	s.written.Add(int64(len(p))) // before the write: the response can arrive before Write returns
	n, err := s.conn.Write(p)
	s.written.Add(int64(n - len(p)))
	return n, err
}

func (s *sending) sendBody(r *Request, piece []byte) error {
	if r.Body == nil {
		for piece := range slices.Chunk(r.Whole, wholePiece) {
			s.clock.restart()
			if _, err := s.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
	from, to := io.Reader(bodyReader{r.Body, s}), io.Writer(s)
	if r.Length >= 0 {
		from = io.LimitReader(from, r.Length)
	} else {
		to = httputil.NewChunkedWriter(s)
	}
	n, err := io.CopyBuffer(to, from, piece)
	switch {
	case err != nil:
		return err
	case n < r.Length:
		return s.failed(io.ErrUnexpectedEOF)
	case r.Length < 0:
		_, err = io.WriteString(s, "0\r\n\r\n")
	}
	return err
}

// bodyReader reads the body of a request that is sent.
type bodyReader struct {
	io.Reader
	of *sending
}

func (b bodyReader) Read(p []byte) (int, error) {
	b.of.clock.pause()
	n, err := b.Reader.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		b.of.clock.restart()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.of.failed(err)
	}
	return n, err
}

// failed ends the exchange after an error of reading the body, because the upstream would wait for the rest.
func (s *sending) failed(err error) error {
	failed := &BodyError{Err: err}
	s.body.Store(failed)
	s.clock.stop()
	s.conn.interrupt()
	return failed
}
