package submitterserver

import (
	"context"
	"sync"
)

// lifetime is the context of a connection's requests. It ends when the submitter is gone.
type lifetime struct {
	context.Context
	cancel context.CancelFunc
	unhook func() bool // keeps over from being called

	mu    sync.Mutex
	after func()      // to be called at the end
	stop  func() bool // stopAfter, made once
}

func newLifetime(base context.Context) *lifetime {
	l := new(lifetime)
	l.Context, l.cancel = context.WithCancel(base)
	l.stop = l.stopAfter
	l.unhook = context.AfterFunc(l.Context, l.over)
	return l
}

// AfterFunc does what context.AfterFunc does, which allocates memory for each call: here, one
// registration serves all requests of the connection. It keeps one function at a time, and
// stop may be called once.
func (l *lifetime) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after != nil || l.Err() != nil { // over may have come and gone
		return context.AfterFunc(l.Context, f)
	}
	l.after = f
	return l.stop
}

// stopAfter takes the function back. It returns false if the function was called.
func (l *lifetime) stopAfter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.after != nil
	l.after = nil
	return kept
}

// over calls the function, if there is one. The context has ended.
func (l *lifetime) over() {
	l.mu.Lock()
	after := l.after
	l.after = nil
	l.mu.Unlock()
	if after != nil {
		after()
	}
}

// close ends the context when no request is left.
func (l *lifetime) close() {
	l.unhook()
	l.cancel()
}
