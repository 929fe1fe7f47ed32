package upstreamclient

import (
	"context"
	"sync"
)

// hook interrupts the request under way when a context ends. It serves all requests with that context, one after
// the other: a context function for each would cost two allocations and more.
type hook struct {
	mu        sync.Mutex
	interrupt func() // of the request under way; nil if there is none
	ended     bool
	clear     func() bool // unset, made once
}

type hookKey struct{}

// WithHook returns a context for requests that are sent one after the other, such as those of a submitter's
// connection.
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

// unset reports whether the context has not ended. If it has not, interrupt is not called anymore.
func (h *hook) unset() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupt = nil
	return !h.ended
}
