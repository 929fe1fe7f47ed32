package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// A sidecar requests that an upstream withdraw a waiting job, which then goes to an idle one. Each message takes 1 to 5 ms, and one
// request in a hundred is lost. The upstream refuses if the job has started.
const (
	leastDelay, mostDelay = time.Millisecond, 5 * time.Millisecond
	lostRequests          = 0.01
	// withdrawTime is how long a sidecar waits for the upstream's response.
	withdrawTime = time.Second
)

// delay draws how long a message takes.
func (w *world) delay() time.Duration {
	return leastDelay + time.Duration(w.messages.Int64N(int64(mostDelay-leastDelay)))
}

// withdraw sends requests to withdraw jobs.
func (s *sidecar) withdraw(w *world) {
	for _, asked := range s.dispatch.Withdrawals(w.time(w.now)) {
		j := s.jobs[asked.Job]
		attempt := j.attempts
		current := func() bool { return !j.ended && j.attempts == attempt }
		refused := func() {
			if current() {
				s.dispatch.CancelWithdrawal(w.time(w.now), asked.Job)
				s.serve(w)
			}
		}
		if w.messages.Float64() < lostRequests {
			w.events.Add(w.now+withdrawTime, rankReport, refused)
			continue
		}
		w.events.Add(w.now+w.delay(), rankReport, func() {
			if !current() || !j.server.release(w, j) {
				w.totals.Refused++
				w.events.Add(w.now+w.delay(), rankReport, refused)
				return
			}
			w.totals.Withdrawn++
			w.events.Add(w.now+w.delay(), rankReport, func() {
				if current() {
					s.fail(w, j, dispatch.Failure{Outcome: pool.Moved}, Lost)
				}
			})
		})
	}
}

// release takes a job out that has not started, and reports whether it did. A server that is down or hangs does not respond:
// that counts as a refusal.
func (s *server) release(w *world, j *job) bool {
	if s == nil || !s.up || s.suffers(hung, w.now) || !s.holds(j) || j.begun >= 0 {
		return false
	}
	s.abandon(j)
	j.server = nil
	return true
}
