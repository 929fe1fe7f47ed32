//go:build soak

package e2e

import (
	"net/http"
	"strconv"
	"strings"
)

// maxAttempts is the default of retry.attempts.
const maxAttempts = 3

// inOrder puts the visits in the order of the attempts. On a busy machine an
// upstream that is being killed may get round to a job after the job's next
// attempt was answered elsewhere. Such a visit sent nothing, and the sidecar's log
// has its attempt before the last one.
func (j *entry) inOrder() {
	if len(j.logged) != 1 || len(j.visits) < 2 || len(j.logged[0].Attempts) < len(j.visits) {
		return
	}
	attempts, visits := j.logged[0].Attempts, j.visits
	answered := visits[len(visits)-2]
	if last := attempts[len(attempts)-1]; !visits[len(visits)-1].wrote && answered.wrote && answered.upstream == last.Upstream {
		visits[len(visits)-2], visits[len(visits)-1] = visits[len(visits)-1], answered
	}
}

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
	case !e.right:
		return "the answer is not the right one"
	case e.visit != strconv.Itoa(last.number):
		return "the answer is not that of the last attempt"
	case e.status != last.status && !last.notStarted:
		return "the status is not the upstream's"
	case e.kind == whole && !last.whole && !last.notStarted:
		return "an answer that was not sent in full came whole"
	case e.kind == cut && !last.wrote:
		return "a cut answer that never began"
	}
	return ""
}

// visitFault is the rule that the attempts break, whatever the submitter got.
func (j *entry) visitFault() string {
	executions := 0
	for i, v := range j.visits {
		switch {
		case v.damaged:
			return "the body was damaged on its way"
		case i < len(j.visits)-1 && v.wrote:
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
		if !v.notStarted && !v.wrote {
			begun++
		}
	}
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
