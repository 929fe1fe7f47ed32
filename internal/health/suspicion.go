package health

import (
	"errors"
	"time"
)

const (
	// doubtful and hopeless are thresholds for the probability that a working upstream would owe as many responses. Below
	// doubtful the upstream is polled at once. Below hopeless, and if its last report failed, it is suspect.
	doubtful, hopeless = 0.05, 0.001
	// silentHopeless is hopeless for upstreams that do not report. They are judged more often, and one of many judgements
	// errs by chance.
	silentHopeless = 0.0003
	// enoughOwed is how many responses an upstream that does not report must owe: one long job is nothing unusual.
	enoughOwed = 2
	// reportsInARow is how many reports must fail in a row before the upstream is suspect.
	reportsInARow = 2
	// silence is how long an upstream that has reported may be silent, in intervals between two reports, before it is
	// judged as one that does not report.
	silence = 2
	// pollAgain is the shortest time between two early polls.
	pollAgain = time.Second
	// trialAfter is how long a suspect that owes nothing gets no job. Then one job tries it, unless a report will show
	// that it works again.
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

	why  string    // why it is suspect; "" if it is trusted
	last time.Time // when it got its last job, or became suspect if that was later

	reported    time.Time // when it was in the state of its last report
	failed      int       // reports in a row
	firstFailed time.Time
	dead        bool // the last poll had no response
	polledEarly time.Time

	responded time.Time // when the last response began
	debt      debt
	listed    bool // it is in Watch.owing
}

// debt counts the responses that an upstream owes: jobs were sent there, and have no response yet. Counting starts at the
// first claim after the last response, or after a time when it owed none.
type debt struct {
	from  uint64 // that claim's number
	own   int    // claims at the upstream
	owed  int    // jobs without a response
	begun int    // responses to claims at other upstreams
}

// Why says why the upstream is suspect; "" if it is trusted.
func (s *Suspicion) Why() string { return s.why }

// LastReport is the instant that the upstream's last report describes; zero if it has not reported.
func (s *Suspicion) LastReport() time.Time { return s.reported }

// ReportsFail reports whether the last report failed.
func (s *Suspicion) ReportsFail() bool { return s.failed > 0 }

// Shuns reports whether a suspect with this many jobs of this sidecar gets no new one.
func (s *Suspicion) Shuns(now time.Time, inFlight int) bool {
	return s.why != "" && (s.dead || inFlight > 0 || now.Sub(s.last) < trialAfter)
}

// SilentSince reports whether the upstream has neither responded nor reported since an instant.
func (s *Suspicion) SilentSince(t time.Time) bool {
	return !s.responded.After(t) && !s.reported.After(t)
}

// Ended records the end of a job without a response; number is that of its claim.
func (s *Suspicion) Ended(number uint64) {
	if s.debt.owed > 0 && number >= s.debt.from {
		s.debt.owed--
	}
}

// Joined forgets what was known of an upstream that has restarted or joined again.
func (s *Suspicion) Joined() { *s = Suspicion{Address: s.Address, listed: s.listed} }

// Left records that the upstream left the set.
func (s *Suspicion) Left() { s.left = true }

// doesNotReport reports whether the upstream is judged as one that does not report.
func (s *Suspicion) doesNotReport(now time.Time, interval time.Duration) bool {
	return now.Sub(s.reported) > silence*interval
}

// chance is how likely an upstream that works owes as many responses, with this many claims elsewhere. It assumes that a job
// has no response yet with the same probability at every upstream, and estimates this probability from the jobs at the others
// (Laplace's rule of succession): the fewer these are, the less it concludes from them.
func (d *debt) chance(elsewhere int) float64 {
	chance := 1.0
	for i := 0; i < d.owed && chance >= silentHopeless; i++ {
		chance *= float64(elsewhere-d.begun+1+i) / float64(elsewhere+2+i)
	}
	return chance
}
