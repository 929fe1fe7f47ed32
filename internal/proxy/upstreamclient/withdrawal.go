package upstreamclient

import (
	"errors"
	"sync"
	"time"
)

// ErrWithdrawn: the request was withdrawn before the first byte of a response.
var ErrWithdrawn = errors.New("the request was withdrawn")

// Withdrawal lets another goroutine end a request that waits for its response. The zero
// value is ready. It serves one request at a time.
type Withdrawal struct {
	mu        sync.Mutex
	conn      *conn // the connection on which the request waits; nil if it does not wait
	begun     bool  // the response has started
	withdrawn bool
}

// Withdraw ends the request with ErrWithdrawn. If the response has started, it does nothing and
// returns false.
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

// again interrupts a withdrawn request again after its deadline was changed.
func (w *Withdrawal) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.withdrawn && w.conn != nil {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// Reset prepares w for another request.
func (w *Withdrawal) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.withdrawn = false, false
}

// enter starts the wait on a connection. It returns false if the request was withdrawn before.
func (w *Withdrawal) enter(cn *conn) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.withdrawn {
		w.conn = cn
	}
	return !w.withdrawn
}

// leave ends the wait. begun is true if the response has started. It reports whether the
// request was withdrawn.
func (w *Withdrawal) leave(begun bool) (withdrawn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.begun = nil, begun
	return w.withdrawn
}
