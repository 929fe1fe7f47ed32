package fakeupstream

import (
	"cmp"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// ErrCut is the error of a Handler's Write after a fault has cut the connection.
var ErrCut = errors.New("fakeupstream: a fault cut the connection")

// Fault is an injected fault. The zero Fault is no fault. Several fields combine, in the
// order of the fields.
type Fault struct {
	// Times is how many requests get the fault; 0 means all until it is replaced.
	Times int

	// Hang reads the request and then does nothing until the fault is replaced.
	Hang bool

	// Status and Body are the response, without processing the request. If only one
	// is set, the other is 200 or empty.
	Status int
	Body   string

	// Header replaces fields of the response's header. A name without
	// values is removed.
	Header http.Header

	// Stall stops the response after StallAfter bytes of its body, until the fault
	// is replaced.
	Stall      bool
	StallAfter int64

	// Cut ends the connection after CutAfter bytes of the response's body, or after
	// the whole body if it is shorter, but before the last chunk of a chunked
	// body. With BeforeHeaders nothing of the response is sent.
	Cut      Cut
	CutAfter int64
}

// BeforeHeaders is the CutAfter for a connection that ends before the response.
const BeforeHeaders = -1

// Cut is a way to end a connection.
type Cut uint8

const (
	NoCut  Cut = iota
	CutFIN     // close it, like a process that exits
	CutRST     // reset it: data that has not reached the peer by then is lost
)

// switches has the current fault of one kind of request.
type switches struct {
	mu       sync.Mutex
	fault    Fault
	left     int           // number of further requests that get the fault; negative is all
	replaced chan struct{} // closed when the fault is replaced
}

func newSwitches() switches { return switches{replaced: make(chan struct{})} }

func (s *switches) set(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, cmp.Or(f.Times, -1)
	close(s.replaced)
	s.replaced = make(chan struct{})
}

// next returns the fault of the next request, and a channel that is closed when it is replaced.
func (s *switches) next() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return Fault{}, s.replaced
	}
	s.left = max(s.left-1, -1)
	return s.fault, s.replaced
}

// serve responds to a request with the current fault, or with next if the fault has no
// response.
func (s *switches) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	fault, replaced := s.next()
	f := &faulty{ResponseWriter: w, fault: fault, replaced: replaced, gone: r.Context().Done()}
	if fault.Hang {
		f.wait()
	}
	if fault.Status != 0 || fault.Body != "" {
		f.Header().Set("Content-Length", strconv.Itoa(len(fault.Body)))
		f.WriteHeader(cmp.Or(fault.Status, http.StatusOK))
		_, _ = f.Write([]byte(fault.Body)) // a submitter that left does not need the rest
	} else {
		next.ServeHTTP(f, r)
	}
	f.WriteHeader(http.StatusOK)
	if fault.Cut != NoCut && !f.cut {
		f.end()
	}
}

// faulty is a ResponseWriter with a fault.
type faulty struct {
	http.ResponseWriter
	fault    Fault
	replaced <-chan struct{} // closed when the fault is replaced
	gone     <-chan struct{} // closed when the submitter has disconnected
	began    bool            // the headers are sent, or never will be
	stalled  bool
	cut      bool
	position int64 // in the body
}

// Unwrap is for http.ResponseController.
func (f *faulty) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// WriteHeader forwards interim responses unchanged.
func (f *faulty) WriteHeader(status int) {
	if f.began {
		return
	}
	if status >= 100 && status <= 199 {
		f.ResponseWriter.WriteHeader(status)
		return
	}
	f.began = true
	if f.fault.Cut != NoCut && f.fault.CutAfter == BeforeHeaders {
		f.end()
		return
	}
	for name, values := range f.fault.Header {
		f.Header()[http.CanonicalHeaderKey(name)] = values
	}
	f.ResponseWriter.WriteHeader(status)
}

func (f *faulty) Write(p []byte) (n int, err error) {
	f.WriteHeader(http.StatusOK)
	for {
		if err := f.reach(); err != nil || len(p) == 0 {
			return n, err
		}
		wrote, err := f.ResponseWriter.Write(p[:min(int64(len(p)), f.clear())])
		n, p = n+wrote, p[wrote:]
		f.position += int64(wrote)
		if err != nil {
			return n, err
		}
	}
}

// reach applies the fault at this position of the body.
func (f *faulty) reach() error {
	if f.fault.Stall && !f.stalled && f.position >= f.fault.StallAfter {
		f.stalled = true
		_ = http.NewResponseController(f.ResponseWriter).Flush() // if it fails, later writes fail, too
		f.wait()
	}
	if f.fault.Cut != NoCut && !f.cut && f.position >= f.fault.CutAfter {
		f.end()
	}
	if f.cut {
		return ErrCut
	}
	return nil
}

// clear returns how many bytes can be written before reach must be called again.
func (f *faulty) clear() int64 {
	n := int64(math.MaxInt64)
	if f.fault.Stall && !f.stalled {
		n = f.fault.StallAfter - f.position
	}
	if f.fault.Cut != NoCut {
		n = min(n, f.fault.CutAfter-f.position)
	}
	return n
}

// end ends the connection after the written bytes.
func (f *faulty) end() {
	f.cut = true
	connection := http.NewResponseController(f.ResponseWriter)
	if f.fault.CutAfter != BeforeHeaders {
		_ = connection.Flush() // a connection that is broken already counts as cut
	}
	conn, _, err := connection.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // this is HTTP/2: it ends the stream at least
	}
	if tcp, ok := conn.(*net.TCPConn); ok && f.fault.Cut == CutRST {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// wait blocks until the fault is replaced or the submitter has disconnected.
func (f *faulty) wait() {
	select {
	case <-f.replaced:
	case <-f.gone:
	}
}
