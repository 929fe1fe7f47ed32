package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// slowest is the minimum rate of a body, in bytes per second. It is far below any
// real line, so it only stops attackers that hold connections open (slowloris).
const slowest = 256

// pacedBody reads a submitter's body and fails if it arrives too slowly. Only time
// spent blocked in reads counts, so a slow upstream is not blamed on the submitter.
type pacedBody struct {
	r       io.Reader
	ahead   int64 // bytes that can have arrived without being readable
	rc      *http.ResponseController
	got     int64
	blocked time.Duration

	mu    sync.Mutex
	ended bool      // the pacing has ended
	due   time.Time // deadline of the read in progress
	late  bool      // a deadline has passed
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if received, ok := b.r.(interface{ Ready() bool }); ok && received.Ready() { // the read does not block
		n, err := b.r.Read(p)
		b.got += int64(n)
		return n, err
	}
	started := time.Now()
	b.deadline(started.Add(bodyIdle + time.Duration(b.got+b.ahead)*(time.Second/slowest) - b.blocked))
	n, err := b.r.Read(p)
	b.missed(err)
	b.deadline(time.Time{}) // a deadline that passes between two reads would end an HTTP/2 stream
	b.got += int64(n)
	b.blocked += time.Since(started)
	return n, err
}

func (b *pacedBody) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.due = at
		_ = b.rc.SetReadDeadline(at) // on error the connection has no deadlines, and the body is not paced
	}
}

// missed records that a read ended at its deadline.
func (b *pacedBody) missed(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.late = true
	}
}

// tooSlow reports whether the deadline of a read has passed. It is true before that read returns: net/http ends the
// request's context first, as if the submitter had disconnected.
func (b *pacedBody) tooSlow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.late || !b.due.IsZero() && !now.Before(b.due)
}

// stop ends the pacing at the end of the job. An abandoned attempt can still read, but net/http must no longer be called then.
func (b *pacedBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// end ends the pacing and sets a read deadline, which also applies to a read in progress.
func (b *pacedBody) end(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.rc.SetReadDeadline(at) // on error the connection has no deadlines
}
