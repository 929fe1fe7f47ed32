package fakeupstream

import (
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// faulty is a ResponseWriter with a fault. What is not faulty passes through.
type faulty struct {
	http.ResponseWriter
	fault    Fault
	until    until
	began    bool // the headers are sent, or never will be
	stalled  bool
	cut      bool
	position int64 // in the body
}

// until is what ends a fault's waiting.
type until struct {
	replaced <-chan struct{} // closed when the fault is replaced
	gone     <-chan struct{} // closed when the submitter has left
}

// serve answers a request with the fault that is due. next answers it where the
// fault does not.
func (s *switches) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	fault, replaced := s.next()
	f := &faulty{ResponseWriter: w, fault: fault, until: until{replaced, r.Context().Done()}}
	if fault.Hang {
		f.until.wait(nil)
	}
	if fault.Status != 0 || fault.Body != "" {
		f.respond()
	} else {
		next.ServeHTTP(f, r)
	}
	f.finish()
}

// Unwrap lets an http.ResponseController flush and set deadlines.
func (f *faulty) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *faulty) WriteHeader(status int) {
	if f.began {
		return
	}
	if status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status) // it is not the response yet
		return
	}
	f.began = true
	f.delay()
	if f.fault.Cut != NoCut && f.fault.CutAfter == BeforeHeaders {
		f.end()
		return
	}
	for _, s := range f.fault.Informational {
		f.ResponseWriter.WriteHeader(s)
	}
	header := f.Header()
	for name, values := range f.fault.Header {
		header.Del(name)
		for _, v := range values {
			header.Add(name, v)
		}
	}
	for name := range f.fault.Trailer {
		header.Add("Trailer", name)
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

// reach does what the fault wants at this position of the body.
func (f *faulty) reach() error {
	if f.fault.Stall && !f.stalled && f.position >= f.fault.StallAfter {
		f.stalled = true
		_ = http.NewResponseController(f.ResponseWriter).Flush() // if it fails, so does what follows
		f.until.wait(nil)
	}
	if f.fault.Cut != NoCut && !f.cut && f.position >= f.fault.CutAfter {
		f.end()
	}
	if f.cut {
		return ErrCut
	}
	return nil
}

// clear is how many bytes may be written before reach must be called again.
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

// finish ends a response whose handler has returned.
func (f *faulty) finish() {
	f.WriteHeader(http.StatusOK)
	if f.fault.Cut != NoCut && !f.cut {
		f.end()
		return
	}
	for name, values := range f.fault.Trailer {
		f.Header()[http.CanonicalHeaderKey(name)] = values
	}
}

// end cuts the connection after what was written.
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
		awaitSent(tcp, f.until.gone) // a reset destroys what is still in the socket
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// delay waits before the response.
func (f *faulty) delay() {
	if f.fault.Delay <= 0 {
		return
	}
	timer := time.NewTimer(f.fault.Delay)
	defer timer.Stop()
	f.until.wait(timer.C)
}

// respond answers instead of a handler.
func (f *faulty) respond() {
	if !f.fault.Chunked && len(f.fault.Trailer) == 0 {
		f.Header().Set("Content-Length", strconv.Itoa(len(f.fault.Body)))
	}
	status := f.fault.Status
	if status == 0 {
		status = http.StatusOK
	}
	f.WriteHeader(status)
	_, _ = f.Write([]byte(f.fault.Body)) // a submitter that left does not need the rest
}

func (u until) wait(enough <-chan time.Time) {
	select {
	case <-enough:
	case <-u.replaced:
	case <-u.gone:
	}
}
