package executor

import (
	"errors"
	"time"
)

// Request is a job to run: it needs the result of the last joblet of a chain.
type Request struct {
	Priority  Priority
	Chain     []Joblet      // at least one
	Expected  time.Duration // core time that its sender expects; 0 is unknown
	Unlearned bool          // ignore the learned durations of the project: without Expected, order by arrival
	Queue     time.Duration // bound on the time from submission to the start of the first joblet
	Evaluate  time.Duration // bound on the time from that start to the end of the last joblet
}

// Facts are the facts of a job so far.
type Facts struct {
	Started   bool          // a joblet that the job needs has started, or it needs none
	Wait      time.Duration // from submission to that start
	Execution time.Duration // from that start to the end of the last joblet
	Cached    bool          // the project's data was cached: the job neither caused nor waited for a fetch
	Fetch     time.Duration // duration of the fetch that the job caused; 0 when it caused none
}

// Errors of a job that ran out of time or was withdrawn.
var (
	ErrWithdrawn       = errors.New("the job was withdrawn before it started")
	ErrQueueTimeout    = errors.New("no joblet of the job started within its queue timeout")
	ErrEvaluateTimeout = errors.New("the job was not evaluated within its evaluate timeout")
)

// Job is a submitted request.
type Job struct {
	changed  chan struct{} // receives a value when the job starts or ends
	request  Request
	rank     rank
	received time.Time
	started  time.Time // zero until a joblet that the job needs starts
	ended    time.Time // zero until the job has its result or an error
	at       int       // index in the chain of the joblet that the job needs next
	needs    *node     // that joblet; nil after the job's end
	result   Result    // of the previous joblet
	err      error
	cached   bool          // the job needed no FeedSource
	fetches  *node         // the FeedSource that the job caused
	fetch    time.Duration // duration of that FeedSource
	expected time.Duration // expected core time of the job
	before   time.Duration // expected core time of the jobs of its project that had not ended at its arrival
	worked   time.Duration // core time so far of the joblets that the job needed
}

func (j *Job) start(now time.Time) {
	if j.started.IsZero() {
		j.started = now
		j.wake()
	}
}

func (j *Job) end(now time.Time, err error) {
	j.ended, j.err = now, err
	j.wake()
}

// wake wakes the goroutine that waits for the job.
func (j *Job) wake() {
	select {
	case j.changed <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// deadline returns when the job's current phase times out.
func (j *Job) deadline() time.Time {
	if j.started.IsZero() {
		return j.received.Add(j.request.Queue)
	}
	return j.started.Add(j.request.Evaluate)
}

// stalled reports whether the job waits only for a core.
func (j *Job) stalled() bool { return j.needs != nil && !j.needs.running }

func (j *Job) facts() Facts {
	f := Facts{Started: !j.started.IsZero(), Cached: j.cached, Fetch: j.fetch}
	if f.Started {
		f.Wait = j.started.Sub(j.received)
	}
	if f.Started && !j.ended.IsZero() {
		f.Execution = j.ended.Sub(j.started)
	}
	return f
}
