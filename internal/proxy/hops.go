package proxy

import (
	"fmt"
	"strconv"
	"sync"

	"example.org/pilotfish/internal/record"
)

// hopsHeader counts how often a job has come back to a sidecar. Only pilotfish sets it, and only in requests of
// jobs that may go in a circle: their identifier is that of another open job, or they already have the header.
const hopsHeader = "Pilotfish-Hops"

// maxHops is how often a job can come back. An upstream can submit jobs of its own with the identifier of the job
// that it works for, so the first return is no error.
const maxHops = 4

// openJobs are the identifiers of the jobs that are open, and how many have each.
type openJobs struct {
	mu    sync.Mutex
	count map[string]int
}

// enter adds a job, and reports whether another open one has its identifier.
func (o *openJobs) enter(id string) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[string]int{}
	}
	o.count[id]++
	return o.count[id] > 1
}

// leave removes a job.
func (o *openJobs) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[id]--; o.count[id] <= 0 {
		delete(o.count, id)
	}
}

// leave ends the time in which a request with the job's identifier is a sign of a circle: its response
// begins. A submitter that uses an identifier again gets it before its next job.
func (x *exchange) leave() {
	if x.open {
		x.open = false
		x.p.open.leave(x.book.Record.ID)
	}
}

// countHops counts a hop in the request's header, where the job may go in a circle. The error ends the circle.
func (x *exchange) countHops() error {
	hops := 0
	if values := x.r.Header[hopsHeader]; len(values) == 1 {
		hops, _ = strconv.Atoi(values[0]) // what is no number counts as 0
	}
	again := x.p.open.enter(x.book.Record.ID)
	x.open = true
	switch {
	case hops >= maxHops:
		return fmt.Errorf("%w: %s is %d", record.ErrLoop, hopsHeader, hops)
	case again || hops > 0:
		x.r.Header[hopsHeader] = []string{strconv.Itoa(max(hops, 0) + 1)}
	}
	return nil
}
