package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
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

// stream is one call of a gRPC method: messages in both directions over one HTTP/2 request.
// Only one goroutine uses it, apart from the receiver that watch starts.
//
// gRPC's own server is not used because it buffers received messages without a budget, in frames that can be
// as small as one byte.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	body   io.Reader
	budget *intake.Budget
	times  timeouts

	buffer     []byte // nil before the first receive
	start, end int    // bounds of the received bytes in buffer
	reserved   int64  // bytes counted in the budget for the last message, or for a new stream
	kept       int64  // bytes counted in the budget until the stream ends

	timer   *time.Timer // the timeout of a message
	expired atomic.Bool

	watched chan struct{} // closed when the receiver of watch has ended; nil without one
	sent    bool          // the response has started
	out     []byte        // the buffer for messages to send; nil before the first
}

// buffers pools the receive buffers.
var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

func newStream(w http.ResponseWriter, r *http.Request, budget *intake.Budget, times timeouts) *stream {
	s := &stream{w: w, rc: http.NewResponseController(w), body: r.Body, budget: budget, times: times}
	h := w.Header()
	h["Content-Type"], h["Date"] = []string{"application/grpc"}, nil
	return s
}

// open counts the stream in the budget and starts the timeout for its first message.
func (s *stream) open() error {
	if err := s.reserve(newStreamBytes); err != nil {
		return failure{codes.ResourceExhausted, err}
	}
	s.timer = time.AfterFunc(s.times.first, s.expire)
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
	if s.buffer != nil && s.watched == nil { // the receiver may still use it
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

// keep counts the last message in the budget until the stream ends.
func (s *stream) keep() { s.kept, s.reserved = s.kept+s.reserved, 0 }

// expire ends the reads of the stream.
func (s *stream) expire() {
	s.expired.Store(true)
	_ = s.rc.SetReadDeadline(time.Unix(1, 0)) // fails only on a stream that has ended
}

// receive waits for the next message, of at most limit bytes. The message is valid until the next call. If it
// does not fit into the buffer, weight times its length counts in the budget until then.
//
// The error is io.EOF at the end of the caller's messages. Other errors are intake.ErrTooLarge, intake.ErrNoRoom,
// record.ErrSlow, a failure, or a read error.
func (s *stream) receive(limit, weight int64) ([]byte, error) {
	if s.watched != nil {
		<-s.watched
		s.watched = nil
	}
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
	if _, err := io.ReadFull(s.body, m[n:]); err != nil {
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
		m, err := s.body.Read(s.buffer[s.end:])
		s.end += m
		if err != nil && s.end < n {
			return s.readError(err)
		}
	}
	return nil
}

// readError converts the error of a read.
func (s *stream) readError(err error) error {
	switch {
	case s.expired.Load() || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: Envoy did not complete a message in time", record.ErrSlow)
	case s.end > s.start && errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// watch starts a goroutine that receives the first bytes of the next message. It calls ended if the stream ends
// instead.
func (s *stream) watch(ended func()) {
	watched := make(chan struct{})
	s.watched = watched
	go func() {
		defer close(watched)
		if s.fill(1) != nil {
			ended()
		}
	}()
}

// send sends a message at once, with the queued messages.
func (s *stream) send(m []byte) error {
	if err := s.queue(m); err != nil {
		return err
	}
	return s.rc.Flush()
}

// message returns the buffer for a message to send, with room for the prefix. It is valid until the message is sent or queued.
func (s *stream) message() []byte {
	if s.out == nil {
		s.out = make([]byte, prefixBytes, 512)
	}
	return s.out[:prefixBytes]
}

// queue writes a message that is sent together with the next one.
func (s *stream) queue(m []byte) error {
	s.sent = true
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-prefixBytes)) //nolint:gosec // replies are short
	if s.out = m; cap(m) > bufferBytes {
		s.out = nil
	}
	_, err := s.w.Write(m)
	return err
}

// finish ends the response with the gRPC status of an error; nil means OK.
func (s *stream) finish(err error) {
	f := failure{code: codes.OK}
	if err != nil && !errors.As(err, &f) {
		f = failure{codes.Unavailable, err}
	}
	if !s.sent {
		_ = s.rc.Flush() // fails only on a stream that has ended
	}
	h := s.w.Header()
	h.Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(f.code)))
	if f.err != nil {
		h.Set(http.TrailerPrefix+"Grpc-Message", string(bytes.ReplaceAll([]byte(url.QueryEscape(f.err.Error())), []byte("+"), []byte("%20"))))
	}
}

// failure is an error with a gRPC status.
type failure struct {
	code codes.Code
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// waiting is a context that starts to watch for the end of the stream at the first call of Done, because only a
// job that waits for an upstream calls Done.
type waiting struct {
	context.Context
	once  sync.Once
	watch func()
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(w.watch)
	return w.Context.Done()
}
