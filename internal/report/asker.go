package report

import (
	"context"
	"fmt"
)

// asker is what every source of reports has: how it asks, and who is told of
// a failure.
type asker struct {
	config  Config
	fetcher fetcher
	failed  func(address string, err error)
}

func newAsker(config Config, failed func(address string, err error)) (asker, error) {
	config = config.filled()
	if err := config.check(); err != nil {
		return asker{}, fmt.Errorf("reports: %w", err)
	}
	return asker{config: config, fetcher: newFetcher(config), failed: failed}, nil
}

// fail tells of a failure, unless it only comes from ending.
func (a *asker) fail(ctx context.Context, address string, part Part, err error) {
	if ctx.Err() == nil {
		a.failed(address, &Error{Address: address, Part: part, Err: err})
	}
}
