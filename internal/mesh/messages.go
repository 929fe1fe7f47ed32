package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

const (
	// maxMargin is what a message may have besides a body, in bytes: headers, metadata.
	maxMargin = 256 << 10
	// freeMessage is up to how many bytes a message does not count in the budget.
	freeMessage = 4 << 10
	// messageTime is how long a message may take from its first bytes to its last.
	messageTime = 30 * time.Second
)

// messages reads the messages of a stream, in gRPC's framing: a flag, four bytes of length,
// and the message. One is held at a time, until the next one is asked for; it counts in the
// budget before it is held. gRPC itself would take in whole messages of all streams.
type messages struct {
	body     io.ReadCloser
	deadline func(time.Time) error // of reads
	budget   *intake.Budget
	most     int64         // bytes of a message besides maxMargin; next makes a change of it known
	time     time.Duration // of a message

	prefix [5]byte
	left   int64         // bytes of the message that are still to come
	asked  chan struct{} // has one where a message may come
	closed chan struct{}

	mu     sync.Mutex
	held   int64 // bytes in the budget
	failed error // why the stream cannot go on
	over   bool  // nothing is held anymore
}

func (f *Filter) messages(w http.ResponseWriter, r *http.Request) *messages {
	m := &messages{
		body: r.Body, deadline: http.NewResponseController(w).SetReadDeadline, budget: f.cfg.Budget,
		most: f.cfg.MaxBody, time: f.messageTime,
		asked: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	m.next()
	return m
}

// next lets the next message come. The one before is no longer held.
func (m *messages) next() {
	m.release()
	select {
	case m.asked <- struct{}{}:
	default: // none has come since
	}
}

// release gives back what the last message took of the budget.
func (m *messages) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.Return(m.held)
	m.held = 0
}

// end gives back what is held, when gRPC has done with the stream. Process may still run.
func (m *messages) end() {
	m.release()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}

// err is why the stream cannot go on; nil if only Envoy's end of it is known.
func (m *messages) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

func (m *messages) fail(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
	return err
}

// hold counts a message in the budget.
func (m *messages) hold(bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return http.ErrBodyReadAfterClose
	}
	if m.failed = m.budget.Reserve(bytes); m.failed == nil {
		m.held = bytes
	}
	return m.failed
}

// Read reads for gRPC. It notices the end of the stream also while no message may come.
func (m *messages) Read(p []byte) (int, error) {
	if m.left > 0 {
		return m.piece(p)
	}
	if _, err := io.ReadFull(m.body, m.prefix[:]); err != nil {
		return 0, err
	}
	select {
	case <-m.asked:
	case <-m.closed:
		return 0, http.ErrBodyReadAfterClose
	}
	if m.begin(int64(binary.BigEndian.Uint32(m.prefix[1:]))) != nil {
		return 0, io.EOF // as if Envoy sent no more: pilotfish can still answer
	}
	return copy(p, m.prefix[:]), nil
}

// begin begins a message of that length.
func (m *messages) begin(length int64) error {
	if length > m.most+maxMargin {
		return m.fail(fmt.Errorf("%w: a message of %d bytes, with %d allowed of a body", intake.ErrTooLarge, length, m.most))
	}
	if length > freeMessage {
		if err := m.hold(length); err != nil {
			return err
		}
	}
	if m.left = length; length > 0 {
		_ = m.deadline(time.Now().Add(m.time)) // fails only on a stream that has ended
	}
	return nil
}

// piece reads some of a message.
func (m *messages) piece(p []byte) (int, error) {
	n, err := m.body.Read(p[:min(int64(len(p)), m.left)])
	if m.left -= int64(n); m.left == 0 {
		_ = m.deadline(time.Time{}) // one that passed between two messages would end the stream
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, m.fail(fmt.Errorf("%w: a message of Envoy's took more than %v", record.ErrSlow, m.time))
	}
	return n, err
}

// Close ends the reading.
func (m *messages) Close() error {
	close(m.closed)
	return m.body.Close()
}
