package health

import (
	"errors"
	"time"
)

const (
	// doubtful and hopeless are thresholds for the probability that a working upstream would owe this many responses by
	// chance. Below doubtful, the upstream is polled at once. Below hopeless, it is suspect if its last report failed.
	doubtful, hopeless = 0.05, 0.001
	// silentHopeless replaces hopeless for upstreams that do not report. They are judged at every response elsewhere,
	// and the more judgements, the more of them are wrong by chance.
	silentHopeless = 0.0003
	// enoughOwed is the minimum number of responses that an upstream without reports must owe to be suspect: one long
	// job is normal.
	enoughOwed = 2
	// reportsInARow is how many reports must fail in a row before the upstream is suspect, or how many health checks must
	// get no response before its jobs are moved.
	reportsInARow = 2
	// silentIntervals is how long an upstream can send no report, in report intervals, before it is judged as one that
	// does not report.
	silentIntervals = 2
	// pollAgain is the shortest time between two early polls.
	pollAgain = time.Second
	// trialAfter is how long a suspect without open jobs gets no new job. Then one job is sent to try it, unless its
	// polls get no response at all: then only a report can clear it.
	trialAfter = 30 * time.Second
)

// ErrNoResponse is the error of a poll that got no response. With any other error the upstream has responded in some way: it
// can work without ever reporting again, so a suspect gets a job that tries it.
var ErrNoResponse = errors.New("no response")

// Suspicion is the evidence that one upstream accepts jobs and does not respond.
type Suspicion struct {
	// Address is the address of the upstream.
	Address string
	left    bool // the upstream has left the set

	why      string    // why it is suspect; "" if it is trusted
	last     time.Time // when it last got a job or became suspect, whichever is later
	evidence time.Time // when its last report failed or it became suspect, whichever is later

	reported    time.Time // the instant that its last report describes
	failed      int       // failed reports, or health checks without a response, in a row
	firstFailed time.Time
	dead        bool // the last poll had no response
	polledEarly time.Time

	responded time.Time // when the last response began
	debt      debt
	listed    bool // it is in Watch.owing
}

// debt counts the responses that an upstream owes: those to jobs that were sent there and have no response yet.
// Counting starts at the first claim after its last response, or after it last owed none.
type debt struct {
	from  uint64 // number of the claim at which counting started
	own   int    // claims at this upstream since then
	owed  int    // jobs at this upstream without a response
	begun int    // claims elsewhere since then whose response has begun
}

// Why says why the upstream is suspect; "" if it is trusted.
func (s *Suspicion) Why() string { return s.why }

// LastReport is the instant that the upstream's last report describes; zero if it has not reported.
func (s *Suspicion) LastReport() time.Time { return s.reported }

// ReportsFail reports whether the last report failed, or the last health check got no response.
func (s *Suspicion) ReportsFail() bool { return s.failed > 0 }

// Hangs reports whether two reports in a row failed, or two health checks got no response, and no response to a job has
// begun since.
func (s *Suspicion) Hangs() bool {
	return s.failed >= reportsInARow && s.responded.Before(s.firstFailed)
}

// fails counts a failed report, or a health check without a response.
func (s *Suspicion) fails(now time.Time) {
	if s.failed++; s.failed == 1 {
		s.firstFailed = now
	}
	s.evidence = now
}

// Excludes reports whether the upstream is a suspect that gets no new job; inFlight is the number of this sidecar's
// jobs there.
func (s *Suspicion) Excludes(now time.Time, inFlight int) bool {
	return s.why != "" && (s.dead || inFlight > 0 || now.Sub(s.last) < trialAfter)
}

// SilentSince reports whether the upstream has neither responded nor reported since an instant.
func (s *Suspicion) SilentSince(t time.Time) bool {
	return !s.responded.After(t) && !s.reported.After(t)
}

// Ended records the end of a job without a response; number is the number of its claim.
func (s *Suspicion) Ended(number uint64) {
	if s.debt.owed > 0 && number >= s.debt.from {
		s.debt.owed--
	}
}

// Joined drops the evidence against an upstream that has restarted or joined again.
func (s *Suspicion) Joined() { *s = Suspicion{Address: s.Address, listed: s.listed} }

// Left records that the upstream left the set.
func (s *Suspicion) Left() { s.left = true }

// doesNotReport reports whether the upstream is judged without reports: it never reported, or not for silentIntervals.
func (s *Suspicion) doesNotReport(now time.Time, interval time.Duration) bool {
	return now.Sub(s.reported) > silentIntervals*interval
}

// chance returns the probability that a working upstream owes this many responses by chance; elsewhere is the number of
// claims at other upstreams in the same time. It assumes that a job is without a response with the same probability at
// every upstream, and estimates this probability from the other upstreams by Laplace's rule of succession. The fewer
// jobs there are elsewhere, the closer the result is to 1.
func (d *debt) chance(elsewhere int) float64 {
	chance := 1.0
	for i := 0; i < d.owed && chance >= silentHopeless; i++ {
		chance *= float64(elsewhere-d.begun+1+i) / float64(elsewhere+2+i)
	}
	return chance
}
