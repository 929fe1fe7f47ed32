package prompts

import "time"

// queue estimates how long a server needs to read the prompts that it has not read yet. For this sidecar's prompts the
// reading times are known. For prompts of other sidecars only their number is known, from reports.
type queue struct {
	prompts int     // of this sidecar, without a response
	own     float64 // their reading time
	others  float64 // reading time of other sidecars' prompts at the last report
	all     float64 // reading time of all prompts at the instant at
	at      time.Time

	reported time.Time // when the last report was received
	read     float64   // Report.Read of the last report
	head     float64   // reading time of the prompt that the server started to read last
	started  time.Time // approximately when it was started
	aborted  float64   // prompts aborted while they waited: the server counts them as completed, but not as started
}

// wait returns the seconds until the server has read all prompts.
func (q *queue) wait(now time.Time) float64 {
	return min(max(q.own, q.all-now.Sub(q.at).Seconds()), q.own+q.others)
}

// add adds a prompt of this sidecar with its reading time.
func (q *queue) add(now time.Time, seconds float64) {
	q.all, q.at = q.wait(now)+seconds, now
	q.own += seconds
	q.prompts++
}

// answered removes a prompt whose response has started: the server has read all prompts that were sent before it.
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
		q.own = 0 // the sum may differ from 0 by rounding errors
	}
}

// Report is the part of a server's report about its prompts.
type Report struct {
	At time.Time
	// Running is the number of prompts being read or responded to, and Waiting that of prompts not yet started.
	Running, Waiting float64
	// Started and Completed count prompts since the server's start. If they are not reported, Started is 0 and Completed negative.
	Started, Completed float64
	// Read counts the bytes read since the server's start, without cached ones. A prompt's bytes are added when it is
	// started. 0 means not reported.
	Read float64
}

// report updates the queue. each is the assumed reading time of another sidecar's prompt and perByte that of a byte, in
// seconds. If the server reports Started, the prompt that it is reading counts as unread, too. If it reports Read, too,
// only the rest of that prompt counts.
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
