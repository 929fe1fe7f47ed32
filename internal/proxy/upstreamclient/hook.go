package upstreamclient

import (
	"context"
	"sync"
)

// hook interrupts the current request when a context ends. All requests with that context use the hook, one after
// the other, because a context.AfterFunc for each request would cost two allocations and more.
type hook struct {
	mu        sync.Mutex
	interrupt func() // interrupts the current request; nil if there is none
	ended     bool
	clear     func() bool // unset, as a field to save allocations
}

type hookKey struct{}

// WithHook returns a context for requests that are sent one after the other, such as the requests of one
// connection of a submitter.
func WithHook(ctx context.Context) context.Context {
	h := &hook{}
	h.clear = h.unset
	context.AfterFunc(ctx, h.end)
	return context.WithValue(ctx, hookKey{}, h)
}

// onEnd calls interrupt when ctx ends, like context.AfterFunc.
func onEnd(ctx context.Context, interrupt func()) (stop func() bool) {
	h, ok := ctx.Value(hookKey{}).(*hook)
	if !ok {
		return context.AfterFunc(ctx, interrupt)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.interrupt = interrupt; h.ended {
		interrupt()
	}
	return h.clear
}

func (h *hook) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended = true; h.interrupt != nil {
		h.interrupt()
	}
}

// unset ends the use of the hook by the current request. It returns false if the context has ended.
func (h *hook) unset() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupt = nil
	return !h.ended
}
