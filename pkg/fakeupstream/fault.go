package fakeupstream

import (
	"net/http"
	"time"
)

// Fault is a way to misbehave. The zero Fault is none. Its parts combine, in the
// order in which they stand here.
type Fault struct {
	// Times is how many requests it meets; 0 means all until it is replaced.
	Times int

	// Hang reads the request and then does nothing.
	Hang bool

	// Status and Body make an answer in place of processing the request. Either
	// is enough: the other is 200 or empty then. It has a Content-Length, unless
	// Chunked or a Trailer forbids it.
	Status  int
	Body    string
	Chunked bool

	// Delay is the time before the answer's first byte. The request has been
	// processed by then.
	Delay time.Duration
	// Informational are 1xx statuses sent before the answer.
	Informational []int
	// Header is set on the answer, over what it has. A name without values is
	// taken off.
	Header http.Header
	// Trailer is announced before the answer's body and sent after it.
	Trailer http.Header

	// Stall stops the answer after StallAfter bytes of its body.
	Stall      bool
	StallAfter int64

	// Cut ends the connection after CutAfter bytes of the answer's body, or
	// where that is shorter, after all of it but the mark that ends a chunked
	// one. With BeforeHeaders nothing of the answer is sent.
	Cut      Cut
	CutAfter int64
}

// BeforeHeaders is the CutAfter that leaves nothing of an answer.
const BeforeHeaders = -1

// Cut is a way to end a connection.
type Cut uint8

const (
	NoCut  Cut = iota
	CutFIN     // close it, as a process does that exits
	CutRST     // reset it
)

// answers says whether the fault stands in for processing.
func (f Fault) answers() bool { return f.Status != 0 || f.Body != "" }
