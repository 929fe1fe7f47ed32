package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/record"
)

// fail ends a job that got no response of an upstream, or only a part of one.
func (x *exchange) fail(err error) {
	if x.book.Begun() {
		x.abortResponse()
		return
	}
	x.removeOpen()
	p := x.book.Refuse(err)
	if p.Status == record.StatusGone {
		panic(http.ErrAbortHandler) // otherwise the server would send an empty 200
	}
	unread := x.unread()
	if unread && x.r.ProtoMajor == 1 || x.p.cfg.Draining() {
		x.w.Header().Set("Connection", "close")
	}
	x.book.Response(x.w.Header(), x.w.Header())
	x.extend(time.Now())
	p.Write(x.w)
	if unread {
		x.linger()
	}
}

// unread reports whether the submitter may still be sending its body.
func (x *exchange) unread() bool {
	return x.r.Body != http.NoBody && (x.body == nil || !x.body.Whole())
}

// linger reads and drops the rest of an HTTP/2 body, within bounds. Without it, the end of the handler
// would reset the stream, and a submitter that reads its response only after sending the whole body would
// lose the response. In HTTP/1.1, the server lingers when it closes the connection.
func (x *exchange) linger() {
	if x.r.ProtoMajor == 1 || x.body != nil && !x.body.Replayable() || x.flush() != nil {
		return // an attempt may be reading the body
	}
	if x.body != nil {
		x.body.Release()
	}
	until := time.Now().Add(lingerTime)
	buffer := newCopyBuffer(-1) // thousands of refused jobs can wait here
	defer buffer.release()
	for err := error(nil); err == nil; {
		idle := time.Now().Add(lingerIdle)
		if idle.After(until) {
			idle = until
		}
		x.paced.end(idle)
		_, err = x.r.Body.Read(buffer.bytes)
	}
}

// abortResponse aborts a response in a way that the submitter can detect. In HTTP/1.1,
// the Content-Length is not reached or the last chunk is missing. In HTTP/2, the stream
// is reset. In HTTP/1.0 the connection is reset, because a close would mean the end.
func (x *exchange) abortResponse() {
	_, framed := x.w.Header()["Content-Length"]
	if x.r.ProtoAtLeast(1, 1) || framed {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := x.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is closed already
	}
	_ = conn.Close()
}
