package sim

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
)

// attempt sends a job to the upstream it was claimed for.
func (w *world) attempt(j *job, g dispatch.Grant) {
	j.assignment, j.sent = g.Assignment, w.now
	j.attempts++
	s := w.servers[w.byName[g.Assignment.Address]]
	switch {
	case s.up && s.suffers(failing, w.now):
		w.events.Add(w.now+instant, rankTimeout, func() { s.fails(w, j) })
	case s.up && (w.cfg.Fleet.Backlog == 0 || len(s.queue) <= w.cfg.Fleet.Backlog):
		s.receive(w, j)
		if !j.ended {
			w.watch(j)
		}
	default:
		w.events.Add(w.now+g.ConnectTimeout, rankTimeout, func() { w.refused(j) })
	}
}

// refused handles a connection that was refused or timed out.
func (w *world) refused(j *job) {
	if j.ended {
		return
	}
	f := dispatch.Failure{Outcome: pool.Refused, ConnectTimedOut: w.now > j.sent+instant}
	if f.ConnectTimedOut && w.cfg.Sidecars.CountTimeouts {
		f = dispatch.Failure{Outcome: pool.TimedOut}
	}
	j.side.fail(w, j, f, Unserved)
}

// watch schedules a timeout check for a job at a server, unless an earlier check is
// already scheduled.
func (w *world) watch(j *job) {
	if due := max(w.now, j.due(w)); due < j.watched {
		j.watched = due
		w.events.Add(due, rankTimeout, func() { w.timeout(j) })
	}
}

// timeout checks whether a timeout of a job at a server has passed, and ends the attempt if so.
func (w *world) timeout(j *job) {
	if w.now != j.watched { // replaced by an earlier check
		return
	}
	j.watched = never
	s := j.server
	if j.ended || s == nil { // the next attempt schedules its own check
		return
	}
	if j.due(w) > w.now {
		w.watch(j)
		return
	}
	s.abandon(j)
	switch {
	case j.answering >= 0:
		w.finish(j, pool.Gone, Overrun)
	case j.begun < 0 && w.now >= j.arrived+j.queueTimeout(w):
		w.finish(j, pool.NotStarted, Expired)
	case j.begun >= 0 && w.now >= after(j.begun, j.Timeouts.Evaluate): // the server's own response reports the timeout
		w.finish(j, pool.Answered, Overrun)
	default:
		left, _ := j.dispatch.TimeLeft(w.time(j.sent))
		j.side.fail(w, j, dispatch.Failure{Outcome: j.dispatch.TimedOut(left), Progress: dispatch.Begun}, Overrun)
	}
}

// due returns when a job at a server times out: by the stream timeout if its response has begun, by the first-byte
// timeout if it runs, and by its queue timeout before that.
func (j *job) due(w *world) time.Duration {
	if j.answering >= 0 {
		return after(j.answering, j.Timeouts.Stream)
	}
	left, _ := j.dispatch.TimeLeft(w.time(j.sent))
	if j.begun >= 0 {
		return min(j.sent+left, after(j.begun, j.Timeouts.Evaluate))
	}
	return min(j.sent+left, j.arrived+j.queueTimeout(w))
}

// after returns begin plus a timeout in seconds; the timeout 0 never passes.
func after(begin time.Duration, bound float64) time.Duration {
	if bound == 0 {
		return never
	}
	return begin + trace.Duration(bound)
}

// queueTimeout returns a job's queue timeout.
func (j *job) queueTimeout(w *world) time.Duration {
	return cmp.Or(trace.Duration(j.Timeouts.Queue), w.cfg.Sidecars.Wait)
}

// answered handles the first byte of a job's response.
func (w *world) answered(j *job) {
	if j.answering >= 0 {
		return
	}
	j.answering = w.now
	if j.watched != never {
		w.watch(j) // for the stream timeout
	}
	var hint *pool.Hint
	if w.cfg.Sidecars.Hints {
		hint = &pool.Hint{
			At: w.time(w.now), Known: true, Cached: !j.cold,
			Waited: j.begun - j.received, Fetched: -1, ByPriority: true, CoresBusy: float64(j.server.busy),
		}
		hint.Running, hint.Stalled = j.server.load()
	}
	j.assignment.Answered(w.time(w.now), true, hint)
}

// finish ends an attempt and its job.
func (w *world) finish(j *job, attempt pool.Outcome, o Outcome) {
	j.assignment.Done(w.time(w.now), attempt)
	w.end(j, o)
	j.side.serve(w)
}

// fail ends a failed attempt and retries the job if it can. last is the job's outcome if it cannot.
func (s *sidecar) fail(w *world, j *job, f dispatch.Failure, last Outcome) {
	if f.ConnectTimedOut {
		j.assignment.Unreached(w.time(w.now))
	}
	if w.survives(j, f.Outcome) {
		return
	}
	j.assignment.Done(w.time(w.now), f.Outcome)
	f.Repeatable = true
	next := s.dispatch.Failed(w.time(w.now), j.dispatch, f)
	if !next.Again {
		w.end(j, last)
		s.serve(w)
		return
	}
	j.last, j.assignment, j.server = last, nil, nil
	j.begun, j.answering, j.fetches, j.cold = -1, -1, false, false
	if next.Pause > 0 {
		w.events.Add(w.now+next.Pause, rankArrival, func() {
			if !j.ended {
				s.claim(w, j)
			}
		})
	} else {
		s.claim(w, j)
	}
	s.serve(w)
}
