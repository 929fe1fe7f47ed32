package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
)

// ServeHTTP takes one job from its arrival to its end. The record is handed
// to the sinks on every path, also after a panic.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.newExchange(w, r)
	defer x.close()
	if err := x.run(); err != nil {
		x.fail(err)
	}
}

// newExchange begins an exchange and its book. What it needs of the stack is free again when the job waits.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{p: p, w: w, r: r, rc: *http.NewResponseController(w)}
	x.book.Open(&p.cfg.Config, time.Now(), intake.Head{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}, r.RemoteAddr)
	x.paced.r, x.paced.rc = r.Body, &x.rc
	return x
}

// run is a job's way. An error before the response has begun becomes a response
// of pilotfish's own; one after it breaks the response off.
func (x *exchange) run() error {
	if err := x.countHops(); err != nil {
		return err
	}
	if err := x.p.guard.check(x.r); err != nil {
		return err
	}
	if err := x.read(); err != nil {
		return err
	}
	if err := x.attempts(); err != nil {
		return err
	}
	if x.unread() { // the upstream answered before it had the whole job
		x.linger()
	}
	return nil
}

// close gives the body back and closes the book.
func (x *exchange) close() {
	x.paced.stop()
	if x.body != nil {
		x.body.Release()
	}
	x.p.cfg.Budget.Return(x.counted)
	x.leave()
	x.book.Close()
}
