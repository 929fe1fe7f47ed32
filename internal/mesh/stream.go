package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

const (
	prefixBytes = 5 // size of the prefix of a gRPC message: a flag and the length
	// bufferBytes is the size of a stream's receive buffer. A message that fits does not count in the budget.
	bufferBytes = 4 << 10
	// newStreamBytes count in the budget for a stream before its first message.
	newStreamBytes = 16 << 10
)

// timeouts of a stream. There is none between messages, because a response can take hours.
type timeouts struct {
	first   time.Duration // until the end of the first message
	message time.Duration // from the first bytes of a message to the last
}

// transport is the HTTP/2 stream of a call: h2.Stream.
type transport interface {
	io.ReadWriter
	// Abort ends the reads with err. Any goroutine can call it.
	Abort(err error)
	// Detach must be called before the goroutine waits for something other than the transport. It calls gone when
	// the caller ends the stream.
	Detach(gone func())
	// Finish ends the response with a gRPC status.
	Finish(code int, message string)
}

// stream is one call of a gRPC method: messages in both directions over one HTTP/2 stream.
// Only one goroutine uses it.
//
// gRPC's own server is not used because it buffers received messages without a budget, in frames that can be
// as small as one byte.
type stream struct {
	transport
	budget *intake.Budget
	times  timeouts

	buffer     []byte // nil before the first receive
	start, end int    // bounds of the received bytes in buffer
	reserved   int64  // bytes counted in the budget for the last message, or for a new stream
	kept       int64  // bytes counted in the budget until the stream ends

	timer *time.Timer // the timeout of a message

	out []byte // the buffer for messages to send; nil before the first
}

// buffers pools the receive buffers.
var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// open counts the stream in the budget and starts the timeout for its first message.
func (s *stream) open() error {
	if err := s.reserve(newStreamBytes); err != nil {
		return failure{codes.ResourceExhausted, err}
	}
	s.timer = time.AfterFunc(s.times.first, func() { s.Abort(record.ErrSlow) })
	s.buffer = buffers.Get().(*[bufferBytes]byte)[:]
	return nil
}

// close ends the timeouts and returns all counted bytes to the budget.
func (s *stream) close() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.release()
	s.budget.Return(s.kept)
	if s.buffer != nil {
		buffers.Put((*[bufferBytes]byte)(s.buffer))
	}
}

func (s *stream) reserve(n int64) error {
	err := s.budget.Reserve(n)
	if err == nil {
		s.reserved = n
	}
	return err
}

func (s *stream) release() {
	s.budget.Return(s.reserved)
	s.reserved = 0
}

// hold counts n further bytes in the budget until the stream ends.
func (s *stream) hold(n int64) error {
	err := s.budget.Reserve(n)
	if err == nil {
		s.kept += n
	}
	return err
}

// receive waits for the next message, of at most limit bytes. The message is valid until the next call. If it
// does not fit into the buffer, weight times its length counts in the budget until then.
//
// The error is io.EOF at the end of the caller's messages. Other errors are intake.ErrTooLarge, intake.ErrNoRoom,
// record.ErrSlow, a failure, or a read error.
func (s *stream) receive(limit, weight int64) ([]byte, error) {
	if err := s.fill(prefixBytes); err != nil {
		return nil, err
	}
	s.release()
	length := int64(binary.BigEndian.Uint32(s.buffer[1:]))
	switch {
	case s.buffer[0] != 0:
		return nil, failure{codes.Unimplemented, errCompressed}
	case length > limit:
		return nil, fmt.Errorf("%w: a message of %d bytes, %d allowed", intake.ErrTooLarge, length, limit)
	case prefixBytes+length <= bufferBytes:
		if err := s.fill(prefixBytes + int(length)); err != nil {
			return nil, err
		}
		s.start = prefixBytes + int(length)
		s.timer.Stop()
		return s.buffer[prefixBytes:s.start], nil
	}
	if err := s.reserve(weight * length); err != nil {
		return nil, err
	}
	m := make([]byte, length)
	n := copy(m, s.buffer[prefixBytes:s.end])
	s.start, s.end = 0, 0
	s.timer.Reset(s.times.message)
	if _, err := io.ReadFull(s, m[n:]); err != nil {
		return nil, s.readError(err)
	}
	s.timer.Stop()
	return m, nil
}

var errCompressed = errors.New("messages must not be compressed")

// fill reads until the buffer has n bytes.
func (s *stream) fill(n int) error {
	if s.start > 0 {
		s.start, s.end = 0, copy(s.buffer, s.buffer[s.start:s.end])
	}
	for s.end < n {
		if s.end > 0 { // of a message
			s.timer.Reset(s.times.message)
		}
		m, err := s.Read(s.buffer[s.end:])
		s.end += m
		if err != nil && s.end < n {
			return s.readError(err)
		}
	}
	return nil
}

func (s *stream) readError(err error) error {
	switch {
	case errors.Is(err, record.ErrSlow):
		return fmt.Errorf("%w: Envoy did not complete a message in time", record.ErrSlow)
	case s.end > s.start && errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// message returns the buffer for a message to send, with room for the prefix. It is valid until the message is sent.
func (s *stream) message() []byte {
	if s.out == nil {
		s.out = make([]byte, prefixBytes, 512)
	}
	return s.out[:prefixBytes]
}

func (s *stream) send(m []byte) error {
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-prefixBytes)) //nolint:gosec // replies are short
	if s.out = m; cap(m) > bufferBytes {
		s.out = nil
	}
	_, err := s.Write(m)
	return err
}

// finish ends the response with the gRPC status of an error; nil means OK.
func (s *stream) finish(err error) {
	f := failure{code: codes.OK}
	if err != nil && !errors.As(err, &f) {
		f = failure{codes.Unavailable, err}
	}
	message := ""
	if f.err != nil {
		message = strings.ReplaceAll(url.QueryEscape(f.err.Error()), "+", "%20")
	}
	s.Finish(int(f.code), message)
}

// failure is an error with a gRPC status.
type failure struct {
	code codes.Code
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// waiting is a context that detaches the stream at the first call of Done: what waits for an upstream, or takes long, must
// not delay the connection's other streams.
type waiting struct {
	context.Context
	once   sync.Once
	detach func()
}

func (w *waiting) leave() { w.once.Do(w.detach) }

func (w *waiting) Done() <-chan struct{} {
	w.leave()
	return w.Context.Done()
}
