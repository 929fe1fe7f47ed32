package prompts

import "time"

// queue is the prompts that a server has not read yet, in seconds of reading. What this sidecar's own prompts take is known.
// Of others' prompts, reports give only the number.
type queue struct {
	prompts int     // of this sidecar, without a response
	own     float64 // what they take
	others  float64 // what others' prompts took, by the last report
	all     float64 // what all took, at the instant at
	at      time.Time

	reported time.Time // the instant of the last report
	read     float64   // bytes read, by the last report
	head     float64   // what the prompt takes that the server started to read last
	started  time.Time // about when that was
	aborted  float64   // prompts that were aborted while they waited: counted as completed, never started
}

// wait is the time until the server has read all prompts.
func (q *queue) wait(now time.Time) float64 {
	return min(max(q.own, q.all-now.Sub(q.at).Seconds()), q.own+q.others)
}

// add adds a prompt of this sidecar.
func (q *queue) add(now time.Time, seconds float64) {
	q.all, q.at = q.wait(now)+seconds, now
	q.own += seconds
	q.prompts++
}

// answered removes a prompt whose response starts: the server has read all that was sent before it.
func (q *queue) answered(sent time.Time, seconds float64) {
	q.remove(seconds)
	if !q.reported.After(sent) {
		q.others = 0
	}
}

// remove removes a prompt that ended without a response.
func (q *queue) remove(seconds float64) {
	q.own -= seconds
	if q.prompts--; q.prompts == 0 {
		q.own = 0 // without rounding errors
	}
}

// Report is what a server reports of its prompts.
type Report struct {
	At time.Time
	// Running is the prompts that are read or answered, and Waiting those that are not started.
	Running, Waiting float64
	// Started and Completed count prompts since the server started; Started is 0, and Completed negative, if not reported.
	Started, Completed float64
	// Read is the bytes read since the server started, without what was cached, each prompt's when it is started; 0 is not
	// reported.
	Read float64
}

// report adopts a report. Others' prompts take each seconds apiece. With Started, the prompt that is being read counts, too;
// with Read, what is left of it is known. perByte is the time to read a byte.
func (q *queue) report(r Report, each, perByte float64) {
	unread, present := r.Waiting, r.Running+r.Waiting
	if r.Started > 0 && r.Completed >= 0 {
		waiting := r.Completed + present - r.Started
		if present == 0 {
			q.aborted = waiting
		}
		unread = min(max(unread, waiting-q.aborted), present)
	}
	if more := r.Read - q.read; more > 0 && q.read > 0 {
		q.head, q.started = perByte*more, q.reported.Add(r.At.Sub(q.reported)/2)
	}
	q.read = r.Read
	others := max(unread-float64(q.prompts), 0)
	if q.others = others * each; others > 0 && q.head > 0 {
		q.others += max(q.head-r.At.Sub(q.started).Seconds(), q.head/10) - each
	}
	q.all, q.at, q.reported = q.own+q.others, r.At, r.At
}
