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

// Config is what the books of all jobs share, whoever carries their bytes. Reader, Budget,
// MaxBody, Claimer and Hint are required.
type Config struct {
	// Reader reads the facts out of a job's body; Budget bounds the bytes of
	// all bodies kept at one time.
	Reader *intake.Reader
	Budget *intake.Budget
	// MaxBody bounds a body, in bytes.
	MaxBody int64
	// Claimer finds an upstream for each attempt.
	Claimer *balancer.Balancer
	// Hint reads the load that an upstream tells in the header or the trailer of
	// its response; ok is false when there is none.
	Hint func(h http.Header, now time.Time) (hint pool.Hint, ok bool)
	// AskLoad has each job ask its upstream for a load report in the text form of ORCA.
	AskLoad bool
	// ExpectedHeader is in which header a job tells its upstream how long it is expected to take, in its canonical form;
	// "" sends none.
	ExpectedHeader string
	// Body is called with the whole body of a job that could be read; nil calls nothing. It must not keep body.
	Body func(r *record.Job, h http.Header, body []byte)
	// Sinks are called in turn for each job, once, when it has ended.
	Sinks []func(*record.Job)
	// Trace begins the span of a job that is to be traced, and adds to the header for the upstreams
	// what tells them. It returns nil for a job that is not. nil traces none.
	Trace func(arrived time.Time, h http.Header) (span any)
	// RequestID adds the job's identifier to responses that have none.
	RequestID bool
	// ExplainHeaders adds headers about the decision to each response.
	ExplainHeaders bool
}

// Check reports what is missing.
func (c *Config) Check() error {
	if c.Reader == nil || c.Budget == nil || c.MaxBody <= 0 || c.Claimer == nil || c.Hint == nil {
		return errors.New("a Reader, a Budget, a positive MaxBody, a Claimer and a Hint are required")
	}
	return nil
}
