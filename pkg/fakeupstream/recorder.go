package fakeupstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// Job is a job that the upstream was sent.
type Job struct {
	Path   string
	Header http.Header
	Body   []byte // nil if there is a Handler
	Ended  bool   // the response is over, whole or not
}

// maxBody bounds what is read of a body, in bytes. The server takes less.
const maxBody = 64<<20 + 1

// readBody reads a request's body, which can be read again afterwards. If it breaks
// off, so does the job.
func readBody(r *http.Request) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// recorder has the jobs in the order in which their bodies were read or, if there
// is a Handler, in which they arrived.
type recorder struct {
	mu      sync.Mutex
	jobs    []*Job
	changed chan struct{} // closed and replaced at each change
}

// add records a job. The caller calls end when its response is over.
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

// Forget empties what Jobs returns.
func (r *recorder) Forget() { r.change(func() { r.jobs = nil }) }

// Await blocks until done holds for Jobs, or ctx ends. With it, tests need not
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
