// Package mesh lets Envoy ask pilotfish for an upstream. It serves Envoy's
// external processor by the Endpoint Picker Protocol of the Gateway API
// Inference Extension, version 1.0.0: Envoy shows each request, pilotfish names
// the upstreams that Envoy is to try, the best first, and Envoy shows the
// response. Bodies pass unchanged.
package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Config says how requests are read and placed. Required are Reader, Budget,
// Claimer, Hint, Observe and MaxBody.
type Config struct {
	// Reader reads the facts out of a job's body; Budget bounds the bytes of
	// all bodies kept at one time.
	Reader *intake.Reader
	Budget *intake.Budget
	// Claimer finds an upstream for each job.
	Claimer Claimer
	// Hint reads the load that an upstream tells on its response; ok is false
	// when there is none.
	Hint func(h http.Header, now time.Time) (hint pool.Hint, ok bool)
	// AskLoad is the form in which each job asks its upstream for a load report,
	// in the terms of ORCA: text, json or bin. "" does not ask.
	AskLoad string
	// Observe is called once for each job, when it has ended.
	Observe func(*record.Job)
	// Trace marks a job that is to be traced, and adds to its header what upstreams are
	// to know of that. It returns nil for a job that is not. nil traces none.
	Trace func(h http.Header) *record.Span
	// MaxBody bounds a body, in bytes.
	MaxBody int64
	// RetryAfter is told to submitters whose job was shed, rounded up to whole
	// seconds; 0 is one second.
	RetryAfter time.Duration
	// ExplainHeaders adds headers about the decision to each response.
	ExplainHeaders bool
}

// Claimer decides where jobs go: a balancer.Balancer.
type Claimer interface {
	// Begin takes in a new job.
	Begin(r dispatch.Request) *dispatch.Job
	// Claim gets an upstream for the job from now on and counts the job there. It
	// blocks while none is eligible. The lease must be ended.
	Claim(ctx context.Context, now time.Time, j *dispatch.Job) (*balancer.Lease, error)
}

// Filter reads and places the requests that Envoy shows.
type Filter struct{ cfg Config }

// New returns a Filter, or says what its Config lacks.
func New(cfg Config) (*Filter, error) {
	if cfg.Reader == nil || cfg.Budget == nil || cfg.Claimer == nil || cfg.Hint == nil || cfg.Observe == nil || cfg.MaxBody <= 0 {
		return nil, errors.New("mesh: Reader, Budget, Claimer, Hint, Observe and MaxBody are required")
	}
	return &Filter{cfg: cfg}, nil
}

// process serves one stream of Envoy's, which is one HTTP request. An error ends
// the stream; what Envoy then does with the request is Envoy's to say.
func (f *Filter) process(stream ext.ExternalProcessor_ProcessServer) error {
	first, err := stream.Recv()
	if err != nil {
		return nil //nolint:nilerr // Envoy left before it asked for anything
	}
	headers := first.GetRequestHeaders()
	if headers == nil || first.GetObservabilityMode() {
		return status.Error(codes.InvalidArgument, "pilotfish needs the request's headers first, and observability_mode off")
	}
	r := requestOf(first, headers)
	x := newExchange(f, stream, r)
	defer x.end()
	return x.run(r)
}

// errLeft is a stream that ended before the response did.
var errLeft = fmt.Errorf("%w, or Envoy gave the request up", record.ErrGone)
