package proxy

import (
	"fmt"
	"net/http"
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
	before := len(o.count)
	o.count[id]++
	return len(o.count) == before
}

func (o *openJobs) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := o.count[id]; n > 1 {
		o.count[id] = n - 1
	} else {
		delete(o.count, id)
	}
}

// countHops adds a job to the open jobs and increments hopsHeader if the job can be in a loop. It returns record.ErrLoop beyond
// maxHops.
func (o *openJobs) countHops(id string, h http.Header) error {
	hops := 0
	if values := h[hopsHeader]; len(values) == 1 {
		hops, _ = strconv.Atoi(values[0]) // an invalid number counts as 0
	}
	again := o.enter(id)
	switch {
	case hops >= maxHops:
		return fmt.Errorf("%w: %s is %d", record.ErrLoop, hopsHeader, hops)
	case again || hops > 0:
		h[hopsHeader] = []string{strconv.Itoa(max(hops, 0) + 1)}
	}
	return nil
}
