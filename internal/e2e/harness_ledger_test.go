//go:build cluster || mesh

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledger holds every job against what was said of it: by its submitter, in the
// sidecar's log, and in the logs of the servers.
type ledger struct {
	mu      sync.Mutex
	answers map[string]answer // by session
	twice   []string          // sessions that were entered again

	passed map[string][]passedJob // by session, from the sidecar's log
	worked map[string][]workedJob // by session, from the servers' logs
}

// answer is what a submitter got.
type answer struct {
	sent, ended time.Time
	status      int    // 0 when not even a head came
	upstream    string // where it is from, as the sidecar says
	right       bool   // the body is the expected one
	cut         error  // why the body did not come to its end
}

// passedJob is a job's line in the sidecar's log.
type passedJob struct {
	Session  string
	Status   int
	Answer   string
	Unframed bool // the sidecar could not see the end of the answer
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

// enter takes a submitter's answer.
func (l *ledger) enter(session string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.answers[session]; ok {
		l.twice = append(l.twice, session)
	}
	l.answers[session] = a
}

// sessions are those of the jobs so far.
func (l *ledger) sessions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.answers))
}

// served says whether an upstream has answered a job that was sent after an instant.
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

// ending says in a word what an answer is.
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

// count says how many jobs ended so.
func (l *ledger) count(ending string) (n int) {
	for _, a := range l.answers {
		if a.ending() == ending {
			n++
		}
	}
	return n
}

// kill is the end of a server that had no notice.
type kill struct {
	upstream     string
	begun, ended time.Time
}

// cutBesides are the sessions whose answers were cut, though not by that kill.
func (l *ledger) cutBesides(k kill) (sessions []string) {
	for session, a := range l.answers {
		underWay := a.upstream == k.upstream && a.sent.Before(k.ended) && a.ended.After(k.begun)
		if a.ending() == "cut" && !underWay {
			sessions = append(sessions, session)
		}
	}
	return sessions
}

// attempts counts attempts by their outcome, "" for all, at one upstream or,
// with "", at all of them.
func (l *ledger) attempts(upstream, outcome string) (n int) {
	for _, jobs := range l.passed {
		for _, j := range jobs {
			for _, a := range j.Attempts {
				if (upstream == "" || a.Upstream == upstream) && (outcome == "" || a.Outcome == outcome) {
					n++
				}
			}
		}
	}
	return n
}

// repeated is how many jobs were worked on to their end more than once.
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

// String is the ledger for people.
func (l *ledger) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d jobs:", len(l.answers))
	for _, e := range []string{"right", "cut", "refused", "wrong", "none"} {
		fmt.Fprintf(&s, " %d %s,", l.count(e), e)
	}
	fmt.Fprintf(&s, " %d answered twice\n%d attempts:", len(l.twice), l.attempts("", ""))
	outcomes := []string{"answered", "failed", "not_started", "refused", "no_answer", "timed_out", "moved", "truncated", "gone"}
	for _, o := range outcomes {
		fmt.Fprintf(&s, " %d %s,", l.attempts("", o), o)
	}
	fmt.Fprintf(&s, " %d jobs worked on twice\n", l.repeated())
	for _, u := range l.upstreams() {
		fmt.Fprintf(&s, "%s:", u)
		for _, o := range outcomes {
			if n := l.attempts(u, o); n > 0 {
				fmt.Fprintf(&s, " %d %s", n, o)
			}
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func (l *ledger) upstreams() (all []string) {
	for _, jobs := range l.passed {
		for _, j := range jobs {
			for _, a := range j.Attempts {
				if !slices.Contains(all, a.Upstream) {
					all = append(all, a.Upstream)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}
