package proxy

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// max1xx bounds the interim answers passed on for one job.
const max1xx = 32

var (
	errInterim = errors.New("too many interim answers")
	errExcess  = errors.New("the connection still held what an earlier answer had too much")
)

// sending is what is known of one request on its way to an upstream. The
// transport tells it from goroutines of its own, even after it has given up.
type sending struct {
	mu       sync.Mutex
	interim  func(code int, h http.Header) // passes a 1xx on
	over     bool                          // nothing may be passed on anymore
	conn     *conn
	reused   bool
	before   int64 // bytes written to conn for earlier jobs
	read     int64 // bytes read from conn by then
	excess   bool  // what came on conn is no answer to this job
	inFull   bool
	answered bool // at least one byte of an answer came
	interims int
}

func (s *sending) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.conn, _ = i.Conn.(*conn)
			s.reused, s.before, s.read = i.Reused, s.conn.written.Load(), s.conn.read.Load()
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.inFull = i.Err == nil
		},
		GotFirstResponseByte: s.gotFirstByte,
		Got1xxResponse:       s.got1xx,
	}
}

// gotFirstByte tells an answer from the excess of an earlier one, which the
// transport may have read along with that: it is there before the job is.
// Taken for an answer, it would give one submitter what another was meant to get.
func (s *sending) gotFirstByte() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reused && (s.conn.read.Load() == s.read || s.conn.written.Load() == s.before) {
		s.excess = true
		_ = s.conn.Close()
		return
	}
	s.answered = true
}

// got1xx passes an interim answer on. 100 is between neighbours: the body
// that it asks for is at hand already.
func (s *sending) got1xx(code int, h textproto.MIMEHeader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excess {
		return errExcess
	}
	if s.interims++; s.interims > max1xx {
		return errInterim
	}
	if code != http.StatusContinue && !s.over {
		s.interim(code, http.Header(h))
	}
	return nil
}

// sent is how far a request got that failed.
type sent struct {
	reused   bool // on a kept connection
	begun    bool // some of it may have reached the upstream
	inFull   bool
	answered bool
	excess   bool
}

// stale reports whether a kept connection brought nothing: it may have been
// closed just as the job was sent, which does not speak against the upstream.
// If nothing of the job was sent, it goes there again on a new connection.
// Otherwise the upstream may be dying of it: the job goes elsewhere if it can.
func (s sent) stale() bool { return s.reused && !s.answered }

// end is called when the transport has returned.
func (s *sending) end() sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return sent{
		reused:   s.reused,
		begun:    s.conn != nil && s.conn.written.Load() > s.before,
		inFull:   s.inFull,
		answered: s.answered,
		excess:   s.excess,
	}
}
