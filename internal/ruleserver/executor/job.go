package executor

import (
	"errors"
	"time"
)

// Errors of a job that ran out of time.
var (
	ErrQueueTimeout    = errors.New("no joblet of the job started within its queue timeout")
	ErrEvaluateTimeout = errors.New("the job was not evaluated within its evaluate timeout")
)

// job is a request from its submission until it leaves.
type job struct {
	request  Request
	rank     rank
	received time.Time
	started  time.Time // zero until a joblet that it needs starts
	ended    time.Time // zero until it has its result or an error
	needs    []*node   // that have not ended, in order; the first is its next
	result   Result
	err      error
	cached   bool          // it needed no FeedSource
	fetches  *node         // the FeedSource that it caused
	fetch    time.Duration // how long that ran
}

func (j *job) start(now time.Time) {
	if j.started.IsZero() {
		j.started = now
	}
}

func (j *job) end(now time.Time, result Result, err error) {
	j.needs, j.ended, j.result, j.err = nil, now, result, err
}

// deadline is when the phase that the job is in times out.
func (j *job) deadline() time.Time {
	if j.started.IsZero() {
		return j.received.Add(j.request.Queue)
	}
	return j.started.Add(j.request.Evaluate)
}

// stalled says that only the lack of a core keeps the job from going on.
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
