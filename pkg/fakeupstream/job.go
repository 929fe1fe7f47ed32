package fakeupstream

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Job is a job or prefetch that the upstream was sent.
type Job struct {
	Method, Path string
	Header       http.Header
	Host         string // as the submitter gave it
	Remote       string // the submitter's address: one for each connection
	Body         []byte
	BodyErr      error // why Body is not whole
	Arrived      time.Time

	Ended bool // the answer is over, whole or not
	Gone  bool // the submitter left before that
}

// journal keeps the jobs in the order in which their bodies were read.
type journal struct {
	mu      sync.Mutex
	jobs    []Job
	first   int           // the number of jobs[0]: how many were forgotten
	changed chan struct{} // closed and replaced at each change
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// add keeps a job and gives its number.
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
