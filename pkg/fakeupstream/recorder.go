package fakeupstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// Job is a received job.
type Job struct {
	Path   string
	Header http.Header
	Body   []byte // nil if there is a Handler
	Ended  bool   // the response is over, whole or not
}

// maxBody bounds the size of a body, in bytes. The server's limit is lower.
const maxBody = 64<<20 + 1

// readBody reads a request's body, and makes it readable again. If the body is truncated, so is the
// copy.
func readBody(r *http.Request) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// recorder stores the jobs in the order in which their bodies were read or, with a
// Handler, in the order of arrival.
type recorder struct {
	mu      sync.Mutex
	jobs    []*Job
	changed chan struct{} // closed and replaced at each change
}

// add records a job. The caller must call end at the end of its response.
func (r *recorder) add(job Job) (end func()) {
	r.change(func() { r.jobs = append(r.jobs, &job) })
	return func() { r.change(func() { job.Ended = true }) }
}

func (r *recorder) change(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) snapshot() ([]Job, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs := make([]Job, 0, len(r.jobs))
	for _, j := range r.jobs {
		jobs = append(jobs, *j)
	}
	return jobs, r.changed
}

// Jobs returns the received requests, except those for reports and health checks.
func (r *recorder) Jobs() []Job {
	jobs, _ := r.snapshot()
	return jobs
}

// Forget removes the recorded jobs.
func (r *recorder) Forget() { r.change(func() { r.jobs = nil }) }

// Await blocks until done returns true for Jobs, or ctx is done, so that tests need not
// sleep.
func (r *recorder) Await(ctx context.Context, done func([]Job) bool) error {
	for {
		jobs, changed := r.snapshot()
		if done(jobs) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
