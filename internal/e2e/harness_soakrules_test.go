//go:build soak

package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxAttempts is the default of retry.attempts.
const maxAttempts = 3

// inOrder puts the visits in the order of the attempts, which is that of the sidecar's
// log. On a busy machine an upstream may get round to a job after the job's next attempt
// was answered elsewhere.
func (j *entry) inOrder() {
	if len(j.logged) != 1 {
		return
	}
	seen := map[string]int{} // visits of each upstream so far
	for _, v := range j.visits {
		v.attempt = j.attemptAt(v.upstream, seen[v.upstream])
		seen[v.upstream]++
	}
	slices.SortStableFunc(j.visits, func(a, b *visit) int { return a.attempt - b.attempt })
	for _, v := range j.visits {
		if v.attempt < len(j.logged[0].Attempts) {
			v.withdrawn = j.logged[0].Attempts[v.attempt].withdrawn()
		}
	}
}

// attemptAt is the index of a job's attempt at an upstream after so many others there, or
// of the last one; without one it is behind all attempts.
func (j *entry) attemptAt(upstream string, before int) int {
	at := len(j.logged[0].Attempts)
	for i, a := range j.logged[0].Attempts {
		if a.Upstream != upstream {
			continue
		}
		if at = i; before == 0 {
			break
		}
		before--
	}
	return at
}

// withdrawn reports whether the sidecar gave the attempt up by itself. Its upstream may
// have begun to answer just then.
func (a attempted) withdrawn() bool { return a.Outcome == "moved" || a.Outcome == "timed_out" }

// fault is the rule that a job's entry breaks; "" is none.
func (j *entry) fault() string {
	if len(j.endings) != 1 {
		return "not exactly one ending"
	}
	e := j.endings[0]
	if text := j.visitFault(); text != "" {
		return text
	}
	switch {
	case e.kind == aborted:
		return "" // whatever there is of it
	case e.kind == nothing:
		return "no answer at all"
	case len(j.logged) != 1:
		return "not exactly one line in the sidecar's log"
	case j.logged[0].Status != e.status:
		return "the sidecar logged another status than it answered"
	case e.kind == own && j.retryable() && !j.logged[0].Refused:
		return "lost, though it could have been retried"
	case e.kind == own:
		return ""
	}
	if len(j.visits) == 0 {
		return "an answer from nowhere"
	}
	last := j.visits[len(j.visits)-1]
	switch {
	case last.notStarted && e.kind == whole && e.status == http.StatusServiceUnavailable:
		return j.turnedAwayFault()
	case !e.right:
		return "the answer is not the right one"
	case e.visit != strconv.Itoa(last.number):
		return "the answer is not that of the last attempt"
	case e.status != last.status:
		return "the status is not the upstream's"
	case e.kind == whole && !last.whole:
		return "an answer that was not sent in full came whole"
	case e.kind == cut && !last.wrote:
		return "a cut answer that never began"
	}
	return ""
}

// turnedAwayFault is the rule that a job breaks whose submitter was told by an upstream that
// nothing was done for it.
func (j *entry) turnedAwayFault() string {
	if !slices.ContainsFunc(j.visits, func(v *visit) bool { return !v.notStarted }) {
		if len(j.logged[0].Attempts) < maxAttempts && !j.logged[0].Refused {
			return "turned away, though it could have been retried"
		}
		return ""
	}
	return "turned away, though an upstream may have begun it"
}

// visitFault is the rule that the attempts break, whatever the submitter got.
func (j *entry) visitFault() string {
	executions := 0
	for i, v := range j.visits {
		switch {
		case v.damaged:
			return "the body was damaged on its way"
		case i < len(j.visits)-1 && v.wrote && !v.withdrawn:
			return "another attempt after an answer had begun"
		case i > 0 && v.upstream == j.visits[i-1].upstream && !j.repeated():
			return "the same upstream again"
		}
		if v.read && !v.notStarted {
			executions++
		}
	}
	// The one retry of a job that may have been begun is the second execution.
	if executions > 2 {
		return "executed more than twice"
	}
	return ""
}

// repeated reports whether a kept connection turned out dead, so that the job
// was sent to the same upstream again.
func (j *entry) repeated() bool {
	for _, l := range j.logged {
		for _, a := range l.Attempts {
			if a.Repeated {
				return true
			}
		}
	}
	return false
}

// story is the faults that the job met.
func (j *entry) story() string {
	var met []string
	for _, v := range j.visits {
		met = append(met, v.fault.String())
	}
	return strings.Join(met, ", ")
}

// retryable reports whether a job without an answer could have had another
// attempt: it had not used up all attempts, nor its one retry after an
// upstream may have begun it.
func (j *entry) retryable() bool {
	begun := 0
	for _, v := range j.visits {
		if !v.notStarted && (!v.wrote || v.withdrawn) {
			begun++
		}
	}
	told := 0 // a visit that an upstream did not get round to is in the log alone
	for _, a := range j.logged[0].Attempts {
		if a.Outcome == "no_answer" || a.withdrawn() {
			told++
		}
	}
	begun = max(begun, told)
	if j.repeated() {
		begun++
	}
	return begun < 2 && len(j.logged[0].Attempts) < maxAttempts
}

// executedTwice reports whether the job was processed more than once.
func (j *entry) executedTwice() bool {
	n := 0
	for _, v := range j.visits {
		if v.read && !v.notStarted {
			n++
		}
	}
	return n > 1
}

// rescued reports whether an attempt failed and the job did not.
func (j *entry) rescued() bool {
	return len(j.logged) == 1 && len(j.logged[0].Attempts) > 1 &&
		j.endings[0].kind == whole && j.endings[0].status == http.StatusOK
}
