package proxy

import (
	"fmt"
	"strconv"
	"sync"

	"example.org/pilotfish/internal/record"
)

// hopsHeader counts how often a job has returned to a sidecar, to detect forwarding loops. It is set only on jobs
// that can be in a loop: another open job has the same request ID, or the header is already present.
const hopsHeader = "Pilotfish-Hops"

// maxHops is the maximum number of returns. One return is not a loop: an upstream can submit jobs of its own with the
// request ID of the job that it is running.
const maxHops = 4

// openJobs counts the open jobs by request ID.
type openJobs struct {
	mu    sync.Mutex
	count map[string]int
}

// enter adds a job and reports whether another open job has its request ID.
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

// leave removes the job from the open jobs when its response begins. Only until then is a second request with
// its ID the sign of a loop: a submitter that reuses an ID sends its next job after the response.
func (x *exchange) leave() {
	if x.open {
		x.open = false
		x.p.open.leave(x.book.Record.ID)
	}
}

// countHops increments hopsHeader if the job can be in a loop, and returns record.ErrLoop beyond maxHops.
func (x *exchange) countHops() error {
	hops := 0
	if values := x.r.Header[hopsHeader]; len(values) == 1 {
		hops, _ = strconv.Atoi(values[0]) // an invalid number counts as 0
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
