package proxy

import (
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/record"
)

// fail ends a job that could not be answered by an upstream, or not in full.
func (x *exchange) fail(err error) {
	if x.book.Begun() {
		x.breakOff()
		return
	}
	p := x.book.Refuse(err)
	if p.Status == record.StatusGone {
		panic(http.ErrAbortHandler) // or the server would answer 200 on its own
	}
	unread := x.unread()
	if unread {
		x.w.Header().Set("Connection", "close")
	}
	x.book.Response(x.w.Header(), x.w.Header())
	x.extend(time.Now())
	p.Write(x.w)
	if unread {
		x.linger()
	}
}

// unread reports whether some of the body is still to come on a connection
// that serves this job alone.
func (x *exchange) unread() bool {
	return x.r.ProtoMajor == 1 && x.r.Body != http.NoBody && (x.body == nil || !x.body.Whole())
}

// linger reads the rest of a refused body, within bounds, for a submitter that
// reads its answer only after it has sent everything: closing at once would
// reset the connection and lose the answer. One that expects to be told to go
// on sends nothing more.
func (x *exchange) linger() {
	if x.expects || x.flush() != nil {
		return
	}
	x.paced.end(time.Now().Add(x.p.linger))
	_, _ = io.CopyN(io.Discard, x.r.Body, 2*x.p.cfg.MaxBody)
}

// breakOff ends an answer so that the submitter cannot take it for whole: by
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
