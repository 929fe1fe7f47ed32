package executor

import (
	"errors"
	"time"
)

// Request is a job: it needs the result of the last joblet of a chain.
type Request struct {
	Priority  Priority
	Chain     []Joblet      // at least one
	Expected  time.Duration // how long it takes on cores, as far as its sender knows; 0 is not known
	Unlearned bool          // what was learned of the project does not count: without Expected, the job goes by its arrival
	Queue     time.Duration // bound on the time from submission to the start of the first joblet
	Evaluate  time.Duration // bound on the time from that start to the end of the last joblet
}

// Facts is what is known of a job so far.
type Facts struct {
	Started   bool          // a joblet that the job needs has started, or it needs none
	Wait      time.Duration // from submission to that start
	Execution time.Duration // from that start to the end of the last joblet
	Cached    bool          // the project's data was cached: the job neither caused nor waited for a fetch
	Fetch     time.Duration // duration of the fetch that the job caused; 0 when it caused none
}

// Errors of a job that ran out of time.
var (
	ErrQueueTimeout    = errors.New("no joblet of the job started within its queue timeout")
	ErrEvaluateTimeout = errors.New("the job was not evaluated within its evaluate timeout")
)

// Job is a request that Submit took in.
type Job struct {
	changed  chan struct{} // has a value after the job started or ended
	request  Request
	rank     rank
	received time.Time
	started  time.Time // zero until a joblet that the job needs starts
	ended    time.Time // zero until the job has its result or an error
	at       int       // in the chain: the joblet that the job needs next
	needs    *node     // that joblet; nil when the job has ended
	result   Result    // of the joblet before
	err      error
	cached   bool          // the job needed no FeedSource
	fetches  *node         // the FeedSource that the job caused
	fetch    time.Duration // how long that one ran
	expected time.Duration // how long the job is expected to run
	before   time.Duration // how long those of its project that were there
	worked   time.Duration // how long the joblets that the job needed ran
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

// wake lets who waits for the job look again.
func (j *Job) wake() {
	select {
	case j.changed <- struct{}{}:
	default: // it has not seen the last change yet, and will see both
	}
}

// deadline is when the job's present phase times out.
func (j *Job) deadline() time.Time {
	if j.started.IsZero() {
		return j.received.Add(j.request.Queue)
	}
	return j.started.Add(j.request.Evaluate)
}

// stalled reports whether the job waits for nothing but a core.
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
