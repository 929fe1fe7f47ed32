package fakeupstream

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrCut is the error of a Handler's Write after a fault has cut the connection.
var ErrCut = errors.New("fakeupstream: a fault cut the connection")

// Fault is a way to misbehave. The zero Fault is none. Its parts combine, in the
// order of the fields.
type Fault struct {
	// Times is how many requests meet the fault; 0 means all until it is replaced.
	Times int

	// Hang reads the request and then does nothing until the fault is replaced.
	Hang bool

	// Status and Body make a response without processing the request. If only one
	// is set, the other is 200 or empty. The response has a Content-Length, unless
	// Chunked or a Trailer forbids it.
	Status  int
	Body    string
	Chunked bool

	// Delay is the time before the response's first byte. The request has been
	// processed by then.
	Delay time.Duration
	// Informational are 1xx statuses sent before the response.
	Informational []int
	// Header is set on the response and replaces what it has. A name without
	// values is removed.
	Header http.Header
	// Trailer is announced before the response's body and sent after it.
	Trailer http.Header

	// Stall stops the response after StallAfter bytes of its body, until the fault
	// is replaced.
	Stall      bool
	StallAfter int64

	// Cut ends the connection after CutAfter bytes of the response's body. If the
	// body is shorter, it ends after all of it but the mark that ends a chunked
	// one. With BeforeHeaders nothing of the response is sent.
	Cut      Cut
	CutAfter int64
}

// BeforeHeaders is the CutAfter that leaves nothing of a response.
const BeforeHeaders = -1

// Cut is a way to end a connection.
type Cut uint8

const (
	NoCut  Cut = iota
	CutFIN     // close it, as a process does that exits
	CutRST     // reset it
)

// switches hold the fault of one kind of request.
type switches struct {
	mu       sync.Mutex
	fault    Fault
	left     int           // requests that the fault will meet; negative for all
	replaced chan struct{} // closed when the fault is
}

func newSwitches() *switches { return &switches{replaced: make(chan struct{})} }

func (s *switches) set(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, f.Times
	if f.Times == 0 {
		s.left = -1
	}
	close(s.replaced)
	s.replaced = make(chan struct{})
}

// next is the fault of the next request, and what is closed when it is replaced.
func (s *switches) next() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return Fault{}, s.replaced
	}
	if s.left > 0 {
		s.left--
	}
	return s.fault, s.replaced
}
