package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/record"
)

// fail ends a job that got no response of an upstream, or not all of it.
func (x *exchange) fail(err error) {
	if x.book.Begun() {
		x.breakOff()
		return
	}
	x.leave()
	p := x.book.Refuse(err)
	if p.Status == record.StatusGone {
		panic(http.ErrAbortHandler) // otherwise the server would respond with 200 on its own
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

// unread reports whether some of the body may still be to come.
func (x *exchange) unread() bool {
	return x.r.Body != http.NoBody && (x.body == nil || !x.body.Whole())
}

// linger reads and drops the rest of an HTTP/2 body, within bounds, for a submitter that reads its
// response only after it has sent everything: the end of the handler resets the stream. In HTTP/1.1, the
// server does the same when it closes the connection.
func (x *exchange) linger() {
	if x.r.ProtoMajor == 1 || x.body != nil && !x.body.Replayable() || x.flush() != nil {
		return // an attempt may be reading the body
	}
	if x.body != nil {
		x.body.Release()
	}
	until := time.Now().Add(lingerTime)
	for buffer, err := make([]byte, 16<<10), error(nil); err == nil; {
		idle := time.Now().Add(lingerIdle)
		if idle.After(until) {
			idle = until
		}
		x.paced.end(idle)
		_, err = x.r.Body.Read(buffer)
	}
}

// breakOff ends a response so that the submitter cannot take it for whole: by
// a missing end of a body with a length or in chunks, by the reset of a stream
// in HTTP/2, and by that of the connection in HTTP/1.0, where a close would mean the end.
func (x *exchange) breakOff() {
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
