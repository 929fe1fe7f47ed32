package upstreamclient

import (
	"errors"
	"sync"
	"time"
)

// ErrWithdrawn: the request was withdrawn before a byte of an answer came.
var ErrWithdrawn = errors.New("the request was withdrawn")

// Withdrawal lets another goroutine end a request that waits for its answer. The zero
// value is ready; one request at a time uses it.
type Withdrawal struct {
	mu        sync.Mutex
	conn      *conn // on which a request waits; nil if none does
	begun     bool  // a byte of its answer has come
	withdrawn bool
}

// Withdraw ends the request with ErrWithdrawn. It returns false, and does nothing, if a byte
// of the answer has come.
func (w *Withdrawal) Withdraw() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return false
	}
	w.withdrawn = true
	if w.conn != nil {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
	return true
}

// again repeats the interruption of a request that was withdrawn: its deadline has been changed.
func (w *Withdrawal) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.withdrawn && w.conn != nil {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// Reset makes it ready for another request.
func (w *Withdrawal) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.withdrawn = false, false
}

// enter begins the wait on a connection, unless the request was withdrawn before.
func (w *Withdrawal) enter(cn *conn) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.withdrawn {
		w.conn = cn
	}
	return !w.withdrawn
}

// leave ends the wait, because an answer has begun or none will come. It reports whether the
// connection was interrupted.
func (w *Withdrawal) leave(begun bool) (withdrawn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.begun = nil, begun
	return w.withdrawn
}
