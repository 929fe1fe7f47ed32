package fakeupstream

import "sync"

// switches hold the fault of one kind of request.
type switches struct {
	mu       sync.Mutex
	fault    Fault
	left     int           // requests that the fault meets yet; negative for all
	replaced chan struct{} // closed when the fault is
}

func newSwitches() *switches { return &switches{replaced: make(chan struct{})} }

func (s *switches) set(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, f.Times
	if f.Times == 0 {
		s.left = -1
	}
	close(s.replaced)
	s.replaced = make(chan struct{})
}

// next gives the fault of the next request, and what ends its hanging.
func (s *switches) next() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return Fault{}, s.replaced
	}
	if s.left > 0 {
		s.left--
	}
	return s.fault, s.replaced
}
