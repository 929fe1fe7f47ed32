// Package mesh lets Envoy ask pilotfish for an upstream. It serves Envoy's
// external processor by the Endpoint Picker Protocol of the Gateway API
// Inference Extension, version 1.0.0: Envoy shows each request, pilotfish names
// the upstreams that Envoy is to try, the best first, and Envoy shows the
// response. Bodies pass unchanged.
package mesh

import (
	"fmt"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/record"
)

// Filter reads and places the requests that Envoy shows.
type Filter struct {
	cfg         job.Config
	messageTime time.Duration // how long a message may take from its first bytes to its last
}

// New returns a Filter, or says what its Config lacks.
func New(cfg job.Config) (*Filter, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	return &Filter{cfg: cfg, messageTime: messageTime}, nil
}

// process serves one stream of Envoy's, which is one HTTP request. An error ends
// the stream; what Envoy then does with the request is Envoy's to say.
func (f *Filter) process(stream ext.ExternalProcessor_ProcessServer, from *messages) error {
	first, err := stream.Recv()
	switch {
	case from.err() != nil:
		return status.Error(codes.ResourceExhausted, from.err().Error())
	case err != nil:
		return nil //nolint:nilerr // Envoy left before it asked for anything
	}
	headers := first.GetRequestHeaders()
	if headers == nil || first.GetObservabilityMode() {
		return status.Error(codes.InvalidArgument, "pilotfish needs the request's headers first, and observability_mode off")
	}
	r := requestOf(first, headers)
	x := newExchange(f, stream, from, r)
	defer x.end()
	return x.run(r)
}

// errLeft is a stream that ended before the response did.
var errLeft = fmt.Errorf("%w, or Envoy gave the request up", record.ErrGone)
