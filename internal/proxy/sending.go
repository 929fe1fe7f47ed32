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

var errInterim = errors.New("too many interim answers")

// sending is what is known of one request on its way to an upstream. The
// transport tells it from goroutines of its own, even after it has given up.
type sending struct {
	mu       sync.Mutex
	interim  func(code int, h http.Header) // passes a 1xx on
	over     bool                          // nothing may be passed on anymore
	conn     *conn
	reused   bool
	before   int64 // bytes written to conn for earlier jobs
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
			s.reused, s.before = i.Reused, s.conn.written.Load()
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.inFull = i.Err == nil
		},
		GotFirstResponseByte: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answered = true
		},
		Got1xxResponse: s.got1xx,
	}
}

// got1xx passes an interim answer on. 100 is between neighbours: the body
// that it asks for is at hand already.
func (s *sending) got1xx(code int, h textproto.MIMEHeader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
}

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
	}
}
