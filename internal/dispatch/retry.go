package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// RetrySettings bounds the attempts of each job, and the retries of all jobs.
type RetrySettings struct {
	// Attempts is the maximum number of upstreams that a job is sent to. 1 means no retries.
	// With more, a refused connection does not count as an attempt. A connect timeout (1 s)
	// does not count either, as long as the job's queue timeout has not passed.
	Attempts int `yaml:"attempts"`
	// ConnectTimeout is the dial timeout of a job's first attempt. Each connect timeout
	// doubles it for the job's next attempt, up to half of the remaining queue time.
	ConnectTimeout time.Duration `yaml:"-"`
	// FirstByte is the timeout of an attempt, from its start to the first byte of the
	// response. A first-byte timeout in the job overrides it.
	FirstByte time.Duration `yaml:"first_byte"`
	// Budget is the maximum ratio of retries to jobs over the last 10 s. Three
	// retries a second are always allowed.
	Budget float64 `yaml:"budget"`
	// On lists the response statuses from 500 to 599 that are retried at another upstream, such as
	// [500, 502, 504], whatever the method. The first upstream may have run the job, so set it only
	// if jobs are idempotent. When no retry is left, the last response is passed on.
	On []int `yaml:"on"`
}

// DefaultRetry returns the settings of an empty file.
func DefaultRetry() RetrySettings {
	return RetrySettings{Attempts: 3, ConnectTimeout: time.Second, FirstByte: 5 * time.Minute, Budget: 0.2}
}

// Check adds invalid values to f.
func (s RetrySettings) Check(f *settings.Faults) {
	f.AtLeast("attempts", int64(s.Attempts), 1)
	f.Positive("connect_timeout", s.ConnectTimeout)
	f.Positive("first_byte", s.FirstByte)
	if !(s.Budget > 0 && s.Budget <= 1) { // in this form it also rejects NaN
		f.Add("budget", "%v is not a share above 0 and up to 1; attempts: 1 means no retries", s.Budget)
	}
	for i, status := range s.On {
		f.Within(fmt.Sprintf("on[%d]", i), status, 500, 599)
	}
}

// Begin returns a new job, which keeps the current timeouts. A job with timeouts of its own gets
// their sum as its deadline; FirstByte replaces a missing evaluate timeout.
func (s RetrySettings) Begin(r Request) *Job {
	j := &Job{Request: r, retries: retries{connect: s.ConnectTimeout, on: s.On}}
	if r.Among != nil {
		j.among = pool.NewAddressSet(r.Among)
	}
	j.FirstByte = r.Queue + cmp.Or(r.Evaluate, s.FirstByte)
	if r.Queue+r.Evaluate+r.Stream > 0 {
		j.Deadline = r.Arrived.Add(j.FirstByte + r.Stream)
	}
	return j
}

// RetriesStatus reports whether j is retried after a response with that status (retry.on).
func (j *Job) RetriesStatus(status int) bool { return slices.Contains(j.retries.on, status) }

// Failure describes an attempt without a response that can be passed on.
type Failure struct {
	// Outcome is the attempt's outcome as the pool counts it.
	Outcome pool.Outcome
	// Progress is the last step that the attempt reached.
	Progress Progress
	// Repeatable is set while the job can be sent again, because its whole body is
	// still kept.
	Repeatable bool
	// ConnectTimedOut is set when the dial took longer than ConnectTimeout.
	ConnectTimedOut bool
	// ConnectionRefused is set when nothing listens at the upstream's address.
	ConnectionRefused bool
	// Stale is set when a pooled connection ended before any byte of the response. The
	// upstream may have closed it as idle, just as the job was sent.
	Stale bool
	// Blameless is set when the failure is no evidence against the upstream: a pooled connection ended so soon that the
	// upstream must have closed it before the job arrived, or the connection failed for a fault of this machine or its resolver. The
	// retry then costs no retry budget.
	Blameless bool
}

// Progress is the last step that an attempt reached before it failed.
type Progress uint8

// The steps of an attempt.
const (
	// Unsent: no byte of the job can have reached the upstream.
	Unsent Progress = iota
	// Begun: the upstream may have begun the job.
	Begun
	// Responded: a byte of the response has arrived.
	Responded
)

// Next is the decision after a failed attempt.
type Next struct {
	// Again: retry, by calling Arrive after Pause.
	Again bool
	// Claimed is set when an upstream is claimed for the retry. Arrive must then be called even if the job has ended.
	Claimed bool
	Pause   time.Duration
	// OverBudget: no retry, only because the retry budget is used up.
	OverBudget bool
}

// retryClass is the rule for retrying a failed attempt.
type retryClass uint8

const (
	never retryClass = iota
	// once: an upstream may have begun the job. Jobs are idempotent, so one retry is
	// safe; more are not, because a job that crashes upstreams would crash all of them.
	once
	// always: retried up to retry.attempts, within the budget; no upstream runs the job.
	always
	// refusal: no connection was made; the retry is free.
	refusal
)

func (f Failure) class() retryClass {
	switch {
	case f.Outcome == pool.NotStarted, // the upstream reported that it did not start the job
		f.Outcome == pool.Failed: // a status that retry.on retries
		return always
	case f.Outcome == pool.Gone, f.Progress == Responded:
		return never
	case f.Progress == Begun:
		return once
	case f.Outcome == pool.Refused && !f.Stale:
		return refusal
	}
	return always
}
