// Package mesh chooses upstreams for Envoy. It serves Envoy's
// external processor (ext_proc) by the Endpoint Picker Protocol of the Gateway API
// Inference Extension, version 1.0.0: one gRPC stream for each HTTP request. Envoy sends the
// request's headers and body, pilotfish replies with the upstreams to try, the best first, and Envoy sends
// the response's headers. Bodies are not changed.
//
// A stream starts with the request's headers. From then on it has a state:
//
//	reading --claimed--> placed --response headers--> responding --end of the response--> complete
//	   |                  |  |
//	   | error            |  +--response of Envoy's own--> local
//	   v                  |
//	refused <-------------+ body too large
//
//	reading     no upstream is claimed; the body is received, or the job waits
//	placed      the lease is open, and Envoy has the upstreams
//	responding  the breaker of the upstream that responded has the status
//	complete    the response has ended, or Envoy does not send its end
//	local       Envoy responded without an upstream: no attempt succeeded
//	refused     pilotfish sent an error response; there is no lease
//
// In any state, the end of the stream ends the lease and closes the job's record. If the state was placed or responding,
// the submitter counts as disconnected.
package mesh

import (
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/record"
)

const (
	// maxHead is the maximum size of a message, in addition to its body, in bytes.
	maxHead = 256 << 10
	// headWeight is the memory in bytes that one byte of headers or metadata can take when decoded.
	headWeight = 4
)

// Filter reads and places the requests that Envoy sends.
type Filter struct{ cfg job.Config }

// New returns a Filter. It returns an error if a required field of the Config is missing.
func New(cfg job.Config) (*Filter, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	return &Filter{cfg: cfg}, nil
}

// process serves one stream, which is one HTTP request. An error ends the stream; Envoy's
// failure_mode_allow decides what happens to the request then.
func (f *Filter) process(c *caller, s *stream) error {
	b, err := s.receive(maxHead, headWeight)
	switch {
	case errors.Is(err, intake.ErrTooLarge), errors.Is(err, intake.ErrNoRoom):
		return failure{codes.ResourceExhausted, err}
	case errors.Is(err, record.ErrSlow):
		return failure{codes.DeadlineExceeded, errors.New("no message was received in time")}
	case errors.Is(err, io.EOF):
		return nil // the caller sent no request
	case err != nil:
		return err
	}
	first, err := decode(b)
	if err != nil {
		return failure{codes.InvalidArgument, err}
	}
	if first.kind != requestHeaders || first.observability {
		return failure{codes.InvalidArgument, errors.New("the first message must be the request's headers, and observability_mode must be off")}
	}
	s.kept, s.reserved = s.reserved, 0 // the headers are kept until the stream ends
	x := newExchange(f, c, s, first)
	defer x.close()
	return x.run()
}

// errLeft: the stream ended before the response did.
var errLeft = fmt.Errorf("%w, or Envoy cancelled the request", record.ErrGone)

// streamTimes are the timeouts of streams.
var streamTimes = timeouts{first: 10 * time.Second, message: 30 * time.Second}
