package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.org/pilotfish/internal/ruleserver"
)

// drain lets the jobs that are in finish. While they do, the socket stays open,
// so that a new job gets an answer that lets it be retried elsewhere.
func drain(server *ruleserver.Server, web *http.Server, grace time.Duration, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	server.Drain()
	drained := make(chan error, 1)
	go func() {
		if err := server.Wait(ctx); err != nil {
			drained <- fmt.Errorf("jobs were still running %v after the signal, and were cut", grace)
			return
		}
		drained <- web.Shutdown(ctx)
	}()
	select {
	case err := <-drained:
		return err
	case s := <-signals:
		return fmt.Errorf("ended at once by a second signal: %v", s)
	}
}

// outlast lets the jobs that are in go on until a notice ends, and stays that
// long to refuse the others. A signal ends it as soon as they are done.
func outlast(server *ruleserver.Server, web *http.Server, stopsAt time.Time, signals <-chan os.Signal) error {
	server.Drain()
	end, cancel := context.WithDeadline(context.Background(), stopsAt)
	defer cancel()
	select {
	case <-signals:
		return drain(server, web, time.Until(stopsAt), signals)
	case <-end.Done():
	}
	if server.Wait(end) != nil {
		return errors.New("jobs were still running at the end of the notice, and were cut")
	}
	return nil
}
