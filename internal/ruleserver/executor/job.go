package executor

import (
	"errors"
	"time"
)

// Request is a job: it needs the result of the last joblet of a chain.
type Request struct {
	Priority Priority
	Chain    []Joblet      // at least one
	Queue    time.Duration // bound on the time from submission to the start of the first joblet
	Evaluate time.Duration // bound on the time from that start to the end of the last joblet
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

// job is a request from submit to leave.
type job struct {
	request  Request
	rank     rank
	received time.Time
	started  time.Time // zero until a joblet that the job needs starts
	ended    time.Time // zero until the job has its result or an error
	needs    []*node   // that have not ended, in order: the first is the next
	result   Result
	err      error
	cached   bool          // the job needed no FeedSource
	fetches  *node         // the FeedSource that the job caused
	fetch    time.Duration // how long that one ran
}

func (j *job) start(now time.Time) {
	if j.started.IsZero() {
		j.started = now
	}
}

func (j *job) end(now time.Time, result Result, err error) {
	j.needs, j.ended, j.result, j.err = nil, now, result, err
}

// deadline is when the job's present phase times out.
func (j *job) deadline() time.Time {
	if j.started.IsZero() {
		return j.received.Add(j.request.Queue)
	}
	return j.started.Add(j.request.Evaluate)
}

// stalled reports whether the job waits for nothing but a core.
func (j *job) stalled() bool { return len(j.needs) > 0 && j.needs[0].state == ready }

func (j *job) facts() Facts {
	f := Facts{Started: !j.started.IsZero(), Cached: j.cached, Fetch: j.fetch}
	if f.Started {
		f.Wait = j.started.Sub(j.received)
	}
	if f.Started && !j.ended.IsZero() {
		f.Execution = j.ended.Sub(j.started)
	}
	return f
}
