package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "stream" of a configuration file.
type Settings struct {
	// Idle is the longest time between two pieces of a response. It is long by
	// default, because an upstream may compute for hours between two pieces: one
	// that is dead, and not silent, is found out within a minute.
	Idle time.Duration `yaml:"idle"`
	// ExplainHeaders adds headers to each response that say which upstream was
	// picked, and why: Pilotfish-Upstream, -Cache, -Attempts, -Why and -Read.
	ExplainHeaders bool `yaml:"explain_headers"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{Idle: 3 * time.Hour} }

// Check reports what cannot be used.
func (s Settings) Check(f *settings.Faults) { f.Positive("idle", s.Idle) }

// Config says how jobs are read, attempted and answered. Reader, Budget and
// Claimer are required.
type Config struct {
	Settings

	// Reader reads the facts out of a job's body; Budget bounds the bytes of
	// all bodies kept at one time.
	Reader *intake.Reader
	Budget *intake.Budget
	// Claimer finds an upstream for each attempt.
	Claimer Claimer
	// Hint reads the load that an upstream tells in the header or the trailer of
	// its response; ok is false when there is none. nil never finds one.
	Hint func(h http.Header, now time.Time) (hint pool.Hint, ok bool)
	// AskLoad is the form in which each job asks its upstream for a load report,
	// in the terms of ORCA: text, json or bin. "" does not ask.
	AskLoad string
	// AskBegun makes each job ask its upstream to tell when it begins.
	AskBegun bool
	// Observe is called once for each job, when it has ended. nil is none.
	Observe func(*record.Job)

	// Trace marks a job that is to be traced, and adds to the header for the upstreams
	// what tells them. It returns nil for a job that is not. nil traces none.
	Trace func(h http.Header) *record.Span

	// Hosts are names that a submitter may put in the Host header besides
	// localhost, loopback addresses and the address it connected to; "*" allows all.
	Hosts []string
	// MaxBody bounds a body, in bytes; default that of intake.
	MaxBody int64
	// BodyIdle is how long a submitter may keep silent while it sends a
	// body, in sum beyond the time that 256 bytes/s take; default 30 s.
	BodyIdle time.Duration

	// WriteIdle bounds how long a submitter may take no byte of an answer; default 5 min.
	WriteIdle time.Duration
	// Linger bounds how long the rest of a refused body is read; default 5 s.
	Linger time.Duration

	// Dial connects to an upstream until ctx ends; nil dials TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// IdleConns is how many connections to each upstream are pooled for later
	// jobs, and IdleConnTimeout for how long; default 64 and 50 s.
	IdleConns       int
	IdleConnTimeout time.Duration
	// MaxAnswerHeader bounds the head of an answer, in bytes; default 256 KiB.
	MaxAnswerHeader int64

	// RetryAfter is told to submitters whose job was shed, rounded up to whole seconds; default 1 s.
	RetryAfter time.Duration
}

// Claimer decides where jobs go: a balancer.Balancer.
type Claimer interface {
	// Begin takes in a new job, which counts for the retry budget.
	Begin(r dispatch.Request) *dispatch.Job
	// Claim gets an upstream for the job's next attempt from now on and counts the job
	// there. It blocks while none is eligible. The errors are ctx's; or
	// context.DeadlineExceeded when the job's deadline has passed; or
	// pool.ErrAllTried when no upstream is left that the job has not been to;
	// or dispatch.ErrFull or dispatch.ErrWaited when the job is shed. The lease
	// must be ended.
	Claim(ctx context.Context, now time.Time, j *dispatch.Job) (*balancer.Lease, error)
}

func (c *Config) validate() error {
	if c.Reader == nil || c.Budget == nil || c.Claimer == nil {
		return errors.New("proxy: Reader, Budget and Claimer are required")
	}
	if c.Hint == nil {
		c.Hint = func(http.Header, time.Time) (pool.Hint, bool) { return pool.Hint{}, false }
	}
	if c.Observe == nil {
		c.Observe = func(*record.Job) {}
	}
	if c.Dial == nil {
		c.Dial = DialTCP()
	}
	var f settings.Faults
	c.Check(f.In("stream"))
	if err := f.Err(); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	return errors.Join(
		number("MaxBody", &c.MaxBody, int64(intake.Default().MaxBody)),
		number("BodyIdle", &c.BodyIdle, 30*time.Second),
		number("WriteIdle", &c.WriteIdle, 5*time.Minute),
		number("Linger", &c.Linger, 5*time.Second),
		number("IdleConns", &c.IdleConns, 64),
		number("IdleConnTimeout", &c.IdleConnTimeout, 50*time.Second),
		number("MaxAnswerHeader", &c.MaxAnswerHeader, 256<<10),
		number("RetryAfter", &c.RetryAfter, time.Second),
	)
}

// DialTCP connects to upstreams as nil does in Config.Dial.
func DialTCP() func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{KeepAliveConfig: keepAlive()}).DialContext
}

// keepAlive finds a dead peer in about a minute, however long a response is silent.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
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
