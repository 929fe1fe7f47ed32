package h2

import (
	"bytes"
	"io"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Stream is one request and its response. Only its handler can call its methods, except Abort.
type Stream struct {
	// Path is the path of the request, with its query.
	Path string

	conn      *Conn // its mutex guards all other fields
	id        uint32
	coroutine *coroutine // nil after the handler has returned
	running   bool       // a goroutine runs the handler
	again     bool       // resume must run the handler once more
	reader    *reader    // the goroutine that runs the handler, if it reads the connection
	blocked   bool       // the handler waits until it can send

	received  *bytes.Buffer // data that was not read yet; nil if there is none
	ended     bool          // the client sends no more data
	room      int64         // bytes that the client can send
	ungranted int64         // bytes that were read and not yet granted again
	window    int64         // send window
	begun     bool          // the response has started
	err       error         // error of reads and writes; nil while the stream is open
	aborted   error         // error of reads after Abort
	gone      func()        // called when the client ends the stream; nil before Detach
}

// Read waits for data of the request. After Abort it returns that error.
func (s *Stream) Read(p []byte) (int, error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	for s.received == nil && !s.ended && s.err == nil && s.aborted == nil {
		s.wait()
	}
	switch {
	case s.aborted != nil:
		return 0, s.aborted
	case s.err != nil:
		return 0, s.err
	case s.received == nil:
		return 0, io.EOF
	}
	n, err := s.received.Read(p)
	if s.conn.consumed(s, int64(n)); s.received.Len() == 0 {
		s.conn.free(s)
	}
	return n, err
}

// Write writes data of the response. It waits while the send window is exhausted.
func (s *Stream) Write(p []byte) (written int, err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for s.begin(); written < len(p); {
		for s.err == nil && min(s.window, c.window) <= 0 {
			s.blocked = true
			s.wait()
		}
		s.blocked = false
		if s.err != nil {
			return written, s.err
		}
		n := min(int64(len(p)-written), maxFrame, s.window, c.window)
		s.window, c.window = s.window-n, c.window-n
		_ = c.framer.WriteData(s.id, false, p[written:written+int(n)]) // cannot fail: it writes to a buffer
		if written += int(n); c.out.Len() > maxUnsent {
			c.flush()
		}
	}
	return written, s.err
}

// wait suspends the handler until something changes. The mutex is held before and after.
func (s *Stream) wait() {
	s.conn.mu.Unlock()
	s.coroutine.yield(struct{}{})
	s.conn.mu.Lock()
}

// begin starts the response.
func (s *Stream) begin() {
	if !s.begun && s.err == nil {
		s.begun = true
		s.headers(false, hpack.HeaderField{Name: ":status", Value: "200"}, hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	}
}

// headers writes headers, or trailers if they are the last.
func (s *Stream) headers(last bool, fields ...hpack.HeaderField) {
	c := s.conn
	c.fields.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(f) // cannot fail: it writes to a buffer
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: c.fields.Bytes(), EndHeaders: true, EndStream: last})
}

// Finish ends the response with a gRPC status, after which the handler returns. It cuts the message after maxMessage bytes.
func (s *Stream) Finish(code int, message string) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.begin(); s.err != nil {
		return
	}
	fields := []hpack.HeaderField{{Name: "grpc-status", Value: strconv.Itoa(code)}, {Name: "grpc-message", Value: message[:min(len(message), maxMessage)]}}
	if message == "" {
		fields = fields[:1]
	}
	if s.headers(true, fields...); !s.ended {
		_ = s.conn.framer.WriteRSTStream(s.id, http2.ErrCodeNo) // cannot fail: it writes to a buffer
	}
}

// Abort ends the reads of the stream with err. Any goroutine can call it.
func (s *Stream) Abort(err error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.aborted = err
	s.conn.resume(nil, s)
}

// Detach prepares for a wait for something other than the client: another goroutine reads the connection from now on.
// gone is called when the client ends the stream before the handler has returned. The handler or a goroutine that it waits for
// can call Detach.
func (s *Stream) Detach(gone func()) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.gone = gone; s.ended || s.err != nil {
		gone()
	}
	if s.reader.reads() {
		s.reader.replaced = true
		go c.read()
	}
}

// end records that the client sends no more data.
func (s *Stream) end() {
	if s.ended = true; s.gone != nil {
		s.gone()
	}
}

// fail ends the stream.
func (s *Stream) fail(r *reader) {
	s.err = ErrGone
	s.end()
	s.conn.resume(r, s)
}

// maxMessage bounds the bytes of a status's message, so that the trailers are one frame.
const maxMessage = 4 << 10
