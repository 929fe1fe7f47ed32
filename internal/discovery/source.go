package discovery

import (
	"context"
	"time"

	"example.org/pilotfish/internal/pool"
)

// source is where upstreams come from.
type source interface {
	// ask returns every upstream that the source knows, with canonical
	// addresses. It may block until that changes, but no longer than atMost if that is
	// positive, and returns early when ctx is done. An error says that there is no
	// answer, which is not the same as an empty one.
	ask(ctx context.Context, atMost time.Duration) (answer, error)
}

// answer is what a source said.
type answer struct {
	upstreams []pool.Upstream
	// flaw is what was left out because it is wrong; nil if nothing was.
	flaw error
}
