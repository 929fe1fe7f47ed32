package fakeupstream

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// maxRecorded bounds what is kept of a body.
const maxRecorded = 64<<20 + 1

// ServeHTTP is what the upstream does with a request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		u.handler.ServeHTTP(w, r)
	case "/metrics", "/v1/cache/projects":
		u.serve(w, r, u.reports)
	default:
		number := u.record(r)
		defer func() { u.journal.end(number, r.Context().Err() != nil) }()
		u.serve(w, r, u.jobs)
	}
}

// record reads a job's body and keeps it. What follows reads it again.
func (u *Upstream) record(r *http.Request) (number int) {
	job := Job{
		Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Host: r.Host,
		Remote: r.RemoteAddr, Arrived: time.Now(),
	}
	job.Body, job.BodyErr = io.ReadAll(io.LimitReader(r.Body, maxRecorded))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(job.Body), r.Body), r.Body}
	return u.journal.add(job)
}

// serve answers a request with the fault that is due.
func (u *Upstream) serve(w http.ResponseWriter, r *http.Request, s *switches) {
	fault, replaced := s.next()
	a := &answer{ResponseWriter: w, fault: fault, until: until{replaced, r.Context().Done()}}
	if fault.Hang {
		a.until.wait(nil)
	}
	if fault.answers() {
		a.serve()
	} else {
		u.handler.ServeHTTP(a, r)
	}
	a.finish()
}
