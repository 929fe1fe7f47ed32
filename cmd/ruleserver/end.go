package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"example.org/pilotfish/internal/ruleserver"
)

// drain lets the open jobs finish. Until then the socket stays open, so that a new
// job gets a response that says that it may be sent elsewhere.
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

// outlast lets the open jobs go on until the end of a notice, and refuses new ones
// until then. After a signal it ends as soon as no job is open.
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

// preemption takes the notice that the server must stop.
type preemption struct {
	// given gets the end of the notice.
	given chan time.Time
	// begin starts the notice at its first call. It returns when the notice ends.
	begin func() time.Time
}

func newPreemption(notice time.Duration) preemption {
	return preemption{
		given: make(chan time.Time, 1),
		begin: sync.OnceValue(func() time.Time { return time.Now().Add(notice) }),
	}
}

// ServeHTTP takes the notice. The response is sent first: a short notice could end, and
// the server with it, before that.
func (p preemption) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	stopsAt := p.begin()
	text := fmt.Sprintf("{\"stops_at\":%q}\n", stopsAt.UTC().Format(time.RFC3339))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush() // who does not hear it has given notice all the same
	select {
	case p.given <- stopsAt:
	default: // the first notice stands
	}
}
