package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Config says how jobs are read, attempted and answered. Reader, Budget and
// Claim are required.
type Config struct {
	// Reader reads the facts out of a job's body; Budget bounds the bytes of
	// all bodies kept at one time.
	Reader *intake.Reader
	Budget *intake.Budget
	// Claim finds an upstream for each attempt.
	Claim Claimer
	// Hint reads the load that an upstream tells on its answer; ok is false
	// when there is none. nil never finds one.
	Hint func(h http.Header, now time.Time) (hint pool.Hint, ok bool)
	// Observe is called once for each job, when it has ended. nil is none.
	Observe func(*Record)

	// Hosts are names that a submitter may put in the Host header besides
	// localhost, loopback addresses and the address it connected to; "*" allows all.
	Hosts []string
	// MaxBody bounds a body, in bytes; default 64 MiB.
	MaxBody int64
	// BodyIdle is how long a submitter may keep silent while it sends a
	// body, in sum beyond the time that 256 bytes/s take; default 30 s.
	BodyIdle time.Duration

	// Attempts bounds the attempts for one job; default 3.
	Attempts int
	// RetryBudget bounds retries to this share of the jobs of the last 10 s;
	// default 0.2. Three a second are always allowed.
	RetryBudget float64
	// ConnectTimeout bounds a dial, and is doubled after it has passed; default 1 s.
	ConnectTimeout time.Duration
	// FirstByte bounds dial, sending and the wait for an answer's head, where
	// the job does not say how long its evaluation may take; default 5 min.
	FirstByte time.Duration

	// Idle bounds the silence of an upstream amid its answer; default 3 h. It
	// is long because an upstream may think for hours between two bytes: one
	// that is dead, not silent, is found out by keep-alive probes within a minute.
	Idle time.Duration
	// WriteIdle bounds how long a submitter may take no byte of an answer; default 5 min.
	WriteIdle time.Duration

	// Dial connects to an upstream until ctx ends; nil dials TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// IdleConns is how many connections to each upstream are kept for later
	// jobs, and IdleConnTimeout for how long; default 64 and 50 s.
	IdleConns       int
	IdleConnTimeout time.Duration
	// MaxAnswerHeader bounds the head of an answer, in bytes; default 256 KiB.
	MaxAnswerHeader int64

	// RetryAfter is told to submitters whose job was shed, rounded up to whole seconds; default 1 s.
	RetryAfter time.Duration
	// ExplainHeaders adds headers about the decision to each answer:
	// Pilotfish-Upstream, -Cache, -Attempts and -Why.
	ExplainHeaders bool
}

// Claimer picks an upstream for an attempt and counts the job there; it
// blocks while none is eligible. The errors are ctx's, or wrap
// pool.ErrAllTried (no other upstream is left), admission.ErrFull or
// admission.ErrWaited (the job is shed).
type Claimer func(ctx context.Context, c Claim) (Lease, error)

// Claim is what a Claimer is asked for.
type Claim struct {
	pool.Request
	// Bytes is the size of the body, which is kept while the job waits.
	Bytes int64
	// Wait bounds the wait for an eligible upstream; 0 means the Claimer's own bound.
	Wait time.Duration
}

// Lease is an attempt's claim on the upstream at Address, and why it was picked.
type Lease struct {
	Address string
	Cache   selection.Cache
	Cost    selection.Cost
	Panic   bool // the breakers were ignored
	Settler
}

// Settler takes back what a claim has counted. Done is called exactly once,
// last; Answered at most once, when an answer begins: healthy is false for one
// that speaks against the upstream.
type Settler interface {
	Answered(healthy bool, hint *pool.Hint)
	Done(o pool.Outcome)
}

func (c *Config) validate() error {
	if c.Reader == nil || c.Budget == nil || c.Claim == nil {
		return errors.New("proxy: Reader, Budget and Claim are required")
	}
	if c.Hint == nil {
		c.Hint = func(http.Header, time.Time) (pool.Hint, bool) { return pool.Hint{}, false }
	}
	if c.Observe == nil {
		c.Observe = func(*Record) {}
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAliveConfig: keepAlive()}).DialContext
	}
	if c.RetryBudget < 0 || c.RetryBudget > 1 {
		return fmt.Errorf("proxy: RetryBudget %v must be between 0 and 1", c.RetryBudget)
	}
	if c.RetryBudget == 0 {
		c.RetryBudget = 0.2
	}
	return errors.Join(
		number("MaxBody", &c.MaxBody, 64<<20),
		number("BodyIdle", &c.BodyIdle, 30*time.Second),
		number("Attempts", &c.Attempts, 3),
		number("ConnectTimeout", &c.ConnectTimeout, time.Second),
		number("FirstByte", &c.FirstByte, 5*time.Minute),
		number("Idle", &c.Idle, 3*time.Hour),
		number("WriteIdle", &c.WriteIdle, 5*time.Minute),
		number("IdleConns", &c.IdleConns, 64),
		number("IdleConnTimeout", &c.IdleConnTimeout, 50*time.Second),
		number("MaxAnswerHeader", &c.MaxAnswerHeader, 256<<10),
		number("RetryAfter", &c.RetryAfter, time.Second),
	)
}

// number gives a field that is 0 its default and refuses a negative one.
func number[N int | int64 | time.Duration](name string, field *N, def N) error {
	switch {
	case *field < 0:
		return fmt.Errorf("proxy: %s %v must be positive", name, *field)
	case *field == 0:
		*field = def
	}
	return nil
}
