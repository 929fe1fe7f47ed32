package proxy

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// slowest is the rate, in bytes per second, below which a body is too slow.
// It is far below what any line offers, so that only those who mean to keep a
// connection busy meet it.
const slowest = 256

// pacedBody reads a submitter's body and gives up on one that hardly comes.
// Only time spent blocked counts, so that a slow upstream is not held against
// the submitter.
type pacedBody struct {
	r       io.Reader
	rc      *http.ResponseController
	got     int64
	blocked time.Duration

	mu    sync.Mutex
	ended bool // another deadline holds
}

func (b *pacedBody) Read(p []byte) (int, error) {
	started := time.Now()
	b.deadline(started.Add(bodyIdle + time.Duration(b.got)*(time.Second/slowest) - b.blocked))
	n, err := b.r.Read(p)
	b.deadline(time.Time{}) // one that passed between two reads would end an HTTP/2 stream
	b.got += int64(n)
	b.blocked += time.Since(started)
	return n, err
}

func (b *pacedBody) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		_ = b.rc.SetReadDeadline(at) // without deadlines, a body is not paced
	}
}

// end ends the pacing. All reads have that deadline, also one of an attempt that waits.
func (b *pacedBody) end(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.rc.SetReadDeadline(at) // likewise
}
