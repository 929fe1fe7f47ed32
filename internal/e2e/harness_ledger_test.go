//go:build cluster || mesh || soak

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// ledger compares the reports about every job: by its submitter, in the sidecar's log, and in
// the servers' logs.
type ledger struct {
	mu      sync.Mutex
	answers map[string]answer // by session
	twice   []string          // sessions with more than one response

	passed map[string][]passedJob // by session, from the sidecar's log
	worked map[string][]workedJob // by session, from the servers' logs
}

// answer is the response that a submitter received.
type answer struct {
	sent, ended time.Time
	status      int    // 0 if not even a head was received
	upstream    string // the upstream, from the sidecar's header
	right       bool   // the body is the expected one
	cut         error  // the error that ended the body early
}

// passedJob is a job's line in the sidecar's log.
type passedJob struct {
	Session  string
	Status   int
	Response string
	Unframed bool // the sidecar could not detect a truncated response
	Error    string
	Attempts []struct{ Upstream, Outcome string }
}

// workedJob is a job's line in a server's log.
type workedJob struct {
	Session, Outcome string

	server string
}

func newLedger() *ledger {
	return &ledger{answers: map[string]answer{}, passed: map[string][]passedJob{}, worked: map[string][]workedJob{}}
}

// enter records a submitter's response.
func (l *ledger) enter(session string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.answers[session]; ok {
		l.twice = append(l.twice, session)
	}
	l.answers[session] = a
}

// sessions returns the sessions of all jobs so far.
func (l *ledger) sessions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.answers))
}

// served reports whether an upstream has responded to a job that was sent after an instant.
func (l *ledger) served(upstream string, after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.upstream == upstream && a.sent.After(after) {
			return true
		}
	}
	return false
}

func (l *ledger) readSidecar(lines []passedJob) {
	for _, j := range lines {
		l.passed[j.Session] = append(l.passed[j.Session], j)
	}
}

func (l *ledger) readServer(address string, lines []workedJob) {
	for _, j := range lines {
		j.server = address
		l.worked[j.Session] = append(l.worked[j.Session], j)
	}
}

// ending names the kind of a response.
func (a answer) ending() string {
	switch {
	case a.status == 0:
		return "none"
	case a.status != 200:
		return "refused"
	case a.cut != nil:
		return "cut"
	case !a.right:
		return "wrong"
	}
	return "right"
}

// count returns the number of jobs with this ending.
func (l *ledger) count(ending string) (n int) {
	for _, a := range l.answers {
		if a.ending() == ending {
			n++
		}
	}
	return n
}

// kill is a server's end without notice.
type kill struct {
	upstream     string
	begun, ended time.Time
}

// cutBesides returns the sessions whose responses were truncated for a reason other than that
// kill.
func (l *ledger) cutBesides(k kill) (sessions []string) {
	for session, a := range l.answers {
		underWay := a.upstream == k.upstream && a.sent.Before(k.ended) && a.ended.After(k.begun)
		if a.ending() == "cut" && !underWay {
			sessions = append(sessions, session)
		}
	}
	return sessions
}

// repeated returns the number of jobs that were executed to the end more than once.
func (l *ledger) repeated() (n int) {
	for _, jobs := range l.worked {
		if finished(jobs) > 1 {
			n++
		}
	}
	return n
}

func finished(jobs []workedJob) (n int) {
	for _, j := range jobs {
		if j.Outcome == "ok" {
			n++
		}
	}
	return n
}

// String formats the ledger for people: the jobs by their responses, and the attempts by upstream and outcome.
func (l *ledger) String() string {
	endings, attempts := map[string]int{}, map[string]int{}
	for _, a := range l.answers {
		endings[a.ending()]++
	}
	for _, jobs := range l.passed {
		for _, j := range jobs {
			for _, a := range j.Attempts {
				attempts[a.Upstream+" "+a.Outcome]++
			}
		}
	}
	return fmt.Sprintf("%d jobs: %v, %d answered twice, %d worked on twice\nattempts: %v\n",
		len(l.answers), endings, len(l.twice), l.repeated(), attempts)
}
