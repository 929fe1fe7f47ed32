package ruleserver

import (
	"errors"
	"fmt"
	"sync"
)

var errDraining = errors.New("the server is draining: it takes no new jobs")

// errFull says that as many jobs are in as the server takes.
type errFull struct{ jobs int }

func (e errFull) Error() string {
	return fmt.Sprintf("the server has %d jobs, and takes no more", e.jobs)
}

// gate counts the jobs that are in, and lets no more in when it is full or
// draining.
type gate struct {
	max int

	mu       sync.Mutex
	in       int
	draining bool
	empty    chan struct{} // closed when draining and nobody is in
}

func newGate(max int) *gate { return &gate{max: max, empty: make(chan struct{})} }

// enter takes a place, which leave gives back.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return errDraining
	}
	if g.in == g.max {
		return errFull{g.max}
	}
	g.in++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
	if g.draining && g.in == 0 {
		close(g.empty)
	}
}

func (g *gate) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return
	}
	g.draining = true
	if g.in == 0 {
		close(g.empty)
	}
}

func (g *gate) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}
