package pool

import (
	"errors"
	"time"
)

const (
	// doubtful and hopeless bound the chance that an upstream that works owes as
	// many answers as it does. Below the first it is asked for a report at once;
	// below the second it is suspect.
	doubtful, hopeless = 0.05, 0.001
	// unheard is the same bound for upstreams that do not report. They are weighed more
	// often, and by chance one of many weighings finds less than it should.
	unheard = 0.0003
	// enoughOwed is how many answers an upstream that does not report must owe: one
	// long job is nothing unusual.
	enoughOwed = 2
	// failedInARow is how many reports must fail one after another.
	failedInARow = 2
	// silence is how long an upstream that has reported may say nothing, in
	// intervals between two reports, before it is judged as one that does not report.
	silence = 2
	// askAgain is the least time between two reports that are asked for early.
	askAgain = time.Second
	// trialAfter is how long a suspect that owes nothing gets no job. Then one job
	// tries it, unless a report will show that it works again.
	trialAfter = 30 * time.Second
)

// ErrNoResponse is why a report failed that was asked for and had no response. An
// upstream with another failure works, perhaps without ever reporting again.
var ErrNoResponse = errors.New("no response")

// ErrRefused is why a poll or a health check failed whose connection was refused: nothing listens at the address.
var ErrRefused = errors.New("connection refused")

// suspicion is the evidence that an upstream takes jobs and answers none. A
// suspect gets no new job while another upstream may be picked.
type suspicion struct {
	why   string    // it is suspect; "" is not
	asked time.Time // when it got its last job, or became suspect if that was later

	failed      int // reports in a row
	firstFailed time.Time
	dead        bool      // the last of them had no response
	answered    time.Time // when the last answer began there

	// The rest counts since its first claim after that answer, or after it owed nothing.
	from  uint64 // that claim's number
	own   int    // claims
	owed  int    // jobs without an answer
	begun int    // answers to claims at other upstreams

	early time.Time // when a report was last asked for early
}

// suspect makes m a suspect, if it is none.
func (p *Pool) suspect(now time.Time, m *member, why string) {
	if m.suspicion.why == "" {
		m.suspicion.why, m.suspicion.asked = why, now
		p.suspects[m] = struct{}{}
	}
}

// shuns reports whether a suspect with so many jobs of this sidecar gets no new one.
func (s *suspicion) shuns(now time.Time, inFlight int) bool {
	return s.why != "" && (s.dead || inFlight > 0 || now.Sub(s.asked) < trialAfter)
}

// letGo counts a job that ended without an answer.
func (s *suspicion) letGo(number uint64) {
	if s.owed > 0 && number >= s.from {
		s.owed--
	}
}

// chance is how likely an upstream that works owes as many answers. It takes the chance that
// a job has no answer yet to be the same everywhere, and knows that chance from the jobs
// elsewhere alone (Laplace's rule of succession): the fewer they are, the less it concludes
// from them.
func (s *suspicion) chance(elsewhere int) float64 {
	chance := 1.0
	for i := 0; i < s.owed && chance >= unheard; i++ {
		chance *= float64(elsewhere-s.begun+1+i) / float64(elsewhere+2+i)
	}
	return chance
}
