package job

import (
	"errors"
	"net/http"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Config is shared by all books. Reader, Budget, MaxBody, Claimer and Hint are required.
type Config struct {
	// Reader reads the facts from requests; Budget bounds the memory of all kept
	// bodies.
	Reader *intake.Reader
	Budget *intake.Budget
	// MaxBody is the maximum size of a body, in bytes.
	MaxBody int64
	// Claimer claims an upstream for each attempt.
	Claimer *balancer.Balancer
	// Hint parses the load that an upstream reports in the header or the trailer of
	// its response.
	Hint func(h http.Header, now time.Time) (pool.Hint, error)
	// NoHint, if not nil, is called with the upstream's address and the error of Hint.
	NoHint func(address string, err error)
	// AttemptFailed, if not nil, is called when an attempt ends with an error, before the job is retried.
	AttemptFailed func(*record.Attempt)
	// NoUpstream, if not nil, returns why no upstream is known; "" if some are. It is part of the error of a job that waited in vain or
	// found the queue full.
	NoUpstream func() string
	// Found, if not nil, reads from the end of a response which share of the job's data the upstream had cached. It is
	// called for jobs whose project has blocks.
	Found func(tail []byte) (share float64, ok bool)
	// Prompt, if not nil, returns the parts of the prompt in a job's body by its tokens; nil if they are unknown.
	Prompt func(body []byte) *intake.Parts
	// AskLoad requests a load report in ORCA's text format with each response.
	AskLoad bool
	// Job is the file's section job, in canonical form (intake.Settings.Canonical).
	Job intake.Settings
	// Body, if not nil, is called with the whole body of each valid job. It must not keep body.
	Body func(r *record.Job, h http.Header, body []byte)
	// Sinks are called in order, once for each ended job.
	Sinks []func(*record.Job)
	// Trace starts the span of a sampled job and adds the trace context to the header for upstreams.
	// It returns nil if the job is not sampled. A nil Trace turns tracing off.
	Trace func(arrived time.Time, h http.Header) (span any)
	// RequestID adds X-Request-Id to responses without one.
	RequestID bool
	// ExplainHeaders adds headers that explain the choice of the upstream to each response.
	ExplainHeaders bool
}

// Check returns an error if a required field is missing.
func (c *Config) Check() error {
	if c.Reader == nil || c.Budget == nil || c.MaxBody <= 0 || c.Claimer == nil || c.Hint == nil {
		return errors.New("a Reader, a Budget, a positive MaxBody, a Claimer and a Hint are required")
	}
	return nil
}

// Tokenize replaces the blocks of a prompt's text by parts of its tokens, if they are known.
func (c *Config) Tokenize(f *intake.Facts, body []byte) {
	if c.Prompt == nil || f.Data == nil || f.Data.Set {
		return
	}
	if parts := c.Prompt(body); parts != nil {
		f.Data = parts
	}
}
