package ruleserver

import (
	"fmt"
	"sync"
)

// openJobs counts the jobs that the server has taken in. It takes no more when it is
// full or draining.
type openJobs struct {
	max int

	mu       sync.Mutex
	n        int
	draining bool
	none     chan struct{} // closed when the server drains and n is 0
}

// enter counts a job in. Without an error, leave must follow.
func (o *openJobs) enter() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.draining {
		return errDraining
	}
	if o.n == o.max {
		return fmt.Errorf("%w: it has %d jobs", errFull, o.max)
	}
	o.n++
	return nil
}

func (o *openJobs) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n--
	if o.draining && o.n == 0 {
		close(o.none)
	}
}

func (o *openJobs) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.draining && o.n == 0 {
		close(o.none)
	}
	o.draining = true
}

func (o *openJobs) isDraining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.draining
}
