package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
)

// ServeHTTP handles one job. The record is passed to the sinks on every path, also
// after a panic.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.newExchange(w, r)
	defer x.close()
	if err := x.run(); err != nil {
		x.fail(err)
	}
}

// newExchange creates the exchange and opens the job's book (job.Book), which records the job and its attempts. It is a
// separate function to keep the stack small while the job waits.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{p: p, w: w, r: r, rc: *http.NewResponseController(w)}
	x.book.Open(&p.cfg.Config, time.Now(), intake.Head{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}, r.RemoteAddr)
	x.paced.r, x.paced.rc = r.Body, &x.rc
	if r.ProtoMajor > 1 {
		x.paced.ahead = maxFrame // net/http reads a frame whole
	}
	return x
}

// run handles the job up to the end of its response. After an error, the caller sends an
// error response or, if the response has begun, aborts it.
func (x *exchange) run() error {
	x.open = true
	if err := x.p.open.countHops(x.book.Record.ID, x.r.Header); err != nil {
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
	if x.unread() { // the upstream responded before it had the whole body
		x.linger()
	}
	return nil
}

// close releases the body and closes the book.
func (x *exchange) close() {
	x.paced.stop()
	if x.body != nil {
		x.body.Release()
	}
	x.p.cfg.Budget.Return(x.counted)
	x.removeOpen()
	x.book.Close()
}
