package fakeupstream

import (
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

var errCut = errors.New("fakeupstream: a fault cut the connection")

// answer is a ResponseWriter with a fault. What is not faulty passes through.
type answer struct {
	http.ResponseWriter
	fault    Fault
	until    until
	began    bool // the headers are out, or will never be
	stalled  bool
	cut      bool
	position int64 // in the body
}

// until is what ends the waiting of a fault.
type until struct {
	replaced <-chan struct{} // the fault was
	gone     <-chan struct{} // the submitter is
}

// Unwrap lets an http.ResponseController flush and set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.began {
		return
	}
	if status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols {
		a.ResponseWriter.WriteHeader(status) // it is not the answer yet
		return
	}
	a.began = true
	a.delay()
	if a.fault.Cut != NoCut && a.fault.CutAfter == BeforeHeaders {
		a.end()
		return
	}
	for _, s := range a.fault.Informational {
		a.ResponseWriter.WriteHeader(s)
	}
	header := a.Header()
	for name, values := range a.fault.Header {
		header.Del(name)
		for _, v := range values {
			header.Add(name, v)
		}
	}
	for name := range a.fault.Trailer {
		header.Add("Trailer", name)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (n int, err error) {
	a.WriteHeader(http.StatusOK)
	for {
		if err := a.reach(); err != nil || len(p) == 0 {
			return n, err
		}
		wrote, err := a.ResponseWriter.Write(p[:min(int64(len(p)), a.clear())])
		n, p = n+wrote, p[wrote:]
		a.position += int64(wrote)
		if err != nil {
			return n, err
		}
	}
}

// reach does what the fault has for this position of the body.
func (a *answer) reach() error {
	if a.fault.Stall && !a.stalled && a.position >= a.fault.StallAfter {
		a.stalled = true
		_ = http.NewResponseController(a.ResponseWriter).Flush() // if it fails, so does what follows
		a.until.wait(nil)
	}
	if a.fault.Cut != NoCut && !a.cut && a.position >= a.fault.CutAfter {
		a.end()
	}
	if a.cut {
		return errCut
	}
	return nil
}

// clear is how many bytes may be written before reach must be called again.
func (a *answer) clear() int64 {
	n := int64(math.MaxInt64)
	if a.fault.Stall && !a.stalled {
		n = a.fault.StallAfter - a.position
	}
	if a.fault.Cut != NoCut {
		n = min(n, a.fault.CutAfter-a.position)
	}
	return n
}

// finish ends an answer whose handler has returned.
func (a *answer) finish() {
	a.WriteHeader(http.StatusOK)
	if a.fault.Cut != NoCut && !a.cut {
		a.end()
		return
	}
	for name, values := range a.fault.Trailer {
		a.Header()[http.CanonicalHeaderKey(name)] = values
	}
}

// end cuts the connection after what was written.
func (a *answer) end() {
	a.cut = true
	connection := http.NewResponseController(a.ResponseWriter)
	if a.fault.CutAfter != BeforeHeaders {
		_ = connection.Flush() // a connection that is broken already is as good as cut
	}
	conn, _, err := connection.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the next best thing, on HTTP/2
	}
	if tcp, ok := conn.(*net.TCPConn); ok && a.fault.Cut == CutRST {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// delay waits before the answer.
func (a *answer) delay() {
	if a.fault.Delay <= 0 {
		return
	}
	timer := time.NewTimer(a.fault.Delay)
	defer timer.Stop()
	a.until.wait(timer.C)
}

// serve answers in place of the server.
func (a *answer) serve() {
	if !a.fault.Chunked && len(a.fault.Trailer) == 0 {
		a.Header().Set("Content-Length", strconv.Itoa(len(a.fault.Body)))
	}
	status := a.fault.Status
	if status == 0 {
		status = http.StatusOK
	}
	a.WriteHeader(status)
	_, _ = a.Write([]byte(a.fault.Body)) // who left does not need the rest
}

func (u until) wait(enough <-chan time.Time) {
	select {
	case <-enough:
	case <-u.replaced:
	case <-u.gone:
	}
}
