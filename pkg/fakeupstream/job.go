package fakeupstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing/iotest"
	"time"
)

// Job is a job or prefetch that the upstream was sent.
type Job struct {
	Method, Path string
	Header       http.Header
	Host         string // as the submitter gave it
	Remote       string // the submitter's address: one for each connection
	Body         []byte // nil if there is a Handler
	BodyErr      error  // why Body is not whole
	Arrived      time.Time

	Ended bool // the response is over, whole or not
	Gone  bool // the submitter left before that
}

// maxRecorded bounds what is kept of a body, in bytes.
const maxRecorded = 64<<20 + 1

// newJob is a request before its body was read.
func newJob(r *http.Request) Job {
	return Job{
		Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Host: r.Host,
		Remote: r.RemoteAddr, Arrived: time.Now(),
	}
}

// readBody reads a request's body. It can be read again afterwards, with the same
// error if it broke off.
func (j *Job) readBody(r *http.Request) {
	j.Body, j.BodyErr = io.ReadAll(io.LimitReader(r.Body, maxRecorded))
	rest := io.Reader(r.Body)
	if j.BodyErr != nil {
		rest = iotest.ErrReader(j.BodyErr)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(j.Body), rest), r.Body}
}

// journal keeps the jobs in the order in which their bodies were read or, if there
// is a Handler, in which they arrived.
type journal struct {
	mu      sync.Mutex
	jobs    []Job
	first   int           // the number of jobs[0]: how many were forgotten
	changed chan struct{} // closed and replaced at each change
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// add keeps a job and returns its number.
func (j *journal) add(job Job) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.jobs = append(j.jobs, job)
	j.tell()
	return j.first + len(j.jobs) - 1
}

func (j *journal) end(number int, gone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if number < j.first {
		return
	}
	job := &j.jobs[number-j.first]
	job.Ended, job.Gone = true, gone
	j.tell()
}

func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.first += len(j.jobs)
	j.jobs = nil
	j.tell()
}

func (j *journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) snapshot() ([]Job, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.jobs), j.changed
}

func (j *journal) await(ctx context.Context, done func([]Job) bool) error {
	for {
		jobs, changed := j.snapshot()
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
