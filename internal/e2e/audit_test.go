//go:build cluster || mesh || soak

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// mostAttempts is the sidecar's default.
const mostAttempts = 3

// audit returns every violation of a rule. lossy are the servers that were killed: their own
// logs can lack the last lines.
func (l *ledger) audit(lossy ...string) (faults []string) {
	for _, session := range l.twice {
		faults = append(faults, session+" was answered twice")
	}
	for session, a := range l.answers {
		for _, fault := range l.auditJob(session, a, lossy) {
			faults = append(faults, fmt.Sprintf("%s (%s, %d): %s: %+v, %+v", session, a.ending(), a.status, fault, l.passed[session], l.worked[session]))
		}
	}
	for session := range l.passed {
		if _, ok := l.answers[session]; !ok {
			faults = append(faults, session+" was never submitted")
		}
	}
	slices.Sort(faults)
	return faults
}

func (l *ledger) auditJob(session string, a answer, lossy []string) (faults []string) {
	say := func(is bool, text string) {
		if is {
			faults = append(faults, text)
		}
	}
	if len(l.passed[session]) != 1 {
		return []string{"not one line in the sidecar's log"}
	}
	job := l.passed[session][0]
	say(a.ending() == "none" || a.ending() == "wrong", "not an answer")
	say(a.status != job.Status, "the sidecar and the submitter disagree on the status")
	say(!job.Unframed && (a.ending() == "cut") != (job.Response == "partial"), "the sidecar and the submitter disagree on the end")

	begun, moved, retryable := 0, 0, true // the number of upstreams that may have started it
	var tried []string
	for i, attempt := range job.Attempts {
		say(!retryable, "it went on after an answer")
		say(slices.Contains(tried, attempt.Upstream), "it came to an upstream again")
		tried = append(tried, attempt.Upstream)
		switch attempt.Outcome {
		case "refused", "not_started":
		case "no_response", "timed_out":
			if begun++; begun > 1 && i+1 < len(job.Attempts) {
				say(true, "it toured the upstreams")
			}
		case "moved": // its upstream may have started it
			moved++
			say(moved > 1, "it was moved twice")
			say(i+1 == len(job.Attempts), "it was moved nowhere")
		default:
			retryable = false
		}
	}
	say(retryable && begun+moved < 2 && len(job.Attempts) < mostAttempts, "it was lost, though it could be retried")

	received, ended := 0, finished(l.worked[session])
	for _, w := range l.worked[session] {
		if w.Outcome != "rejected" {
			received++
		}
	}
	unlogged := len(tried) > 0 && slices.Contains(lossy, tried[len(tried)-1])
	say(received > len(job.Attempts)-countOf(job, "not_started"), "more servers took it than it was sent to")
	say(ended > 1+begun+moved, "it was worked on once more than anything explains")
	say(a.ending() == "right" && ended == 0 && !unlogged, "no server knows of its answer")
	return faults
}

func countOf(job passedJob, outcome string) (n int) {
	for _, a := range job.Attempts {
		if a.Outcome == outcome {
			n++
		}
	}
	return n
}

// TestClusterAudit: the auditor finds each fault, and reports none without one.
func TestClusterAudit(t *testing.T) {
	right := answer{status: 200, right: true}
	for name, c := range map[string]struct {
		answer   answer
		attempts [][2]string // upstream and outcome
		answered string      // from the sidecar's header
		worked   []string    // outcomes in the servers' logs
		fault    string      // "" for no fault
	}{
		"plain":            {right, [][2]string{{"a", "answered"}}, "complete", []string{"ok"}, ""},
		"no line":          {right, nil, "complete", nil, "not one line"},
		"wrong":            {answer{status: 200}, [][2]string{{"a", "answered"}}, "complete", []string{"ok"}, "not an answer"},
		"retried":          {right, [][2]string{{"a", "refused"}, {"b", "no_response"}, {"c", "answered"}}, "complete", []string{"ok"}, ""},
		"worked on twice":  {right, [][2]string{{"a", "timed_out"}, {"b", "answered"}}, "complete", []string{"ok", "ok"}, ""},
		"moved":            {right, [][2]string{{"a", "moved"}, {"b", "answered"}}, "complete", []string{"ok", "ok"}, ""},
		"moved twice":      {right, [][2]string{{"a", "moved"}, {"b", "moved"}, {"c", "answered"}}, "complete", []string{"ok"}, "moved twice"},
		"moved nowhere":    {answer{status: 502}, [][2]string{{"a", "refused"}, {"b", "refused"}, {"c", "moved"}}, "absent", nil, "moved nowhere"},
		"and once more":    {right, [][2]string{{"a", "refused"}, {"b", "answered"}}, "complete", []string{"ok", "ok"}, "once more than anything explains"},
		"from nowhere":     {right, [][2]string{{"a", "answered"}}, "complete", nil, "no server knows"},
		"killed":           {right, [][2]string{{"killed", "answered"}}, "complete", nil, ""},
		"cut":              {answer{status: 200, cut: assert.AnError}, [][2]string{{"a", "truncated"}}, "partial", []string{"cancelled"}, ""},
		"cut unseen":       {right, [][2]string{{"a", "truncated"}}, "partial", []string{"ok"}, "disagree on the end"},
		"after a cut":      {right, [][2]string{{"a", "truncated"}, {"b", "answered"}}, "complete", []string{"ok"}, "went on after"},
		"given up early":   {answer{status: 502}, [][2]string{{"a", "no_response"}}, "absent", nil, "could be retried"},
		"given up rightly": {answer{status: 502}, [][2]string{{"a", "no_response"}, {"b", "no_response"}}, "absent", nil, ""},
		"toured":           {right, [][2]string{{"a", "no_response"}, {"b", "no_response"}, {"c", "answered"}}, "complete", []string{"ok"}, "toured"},
		"back again":       {right, [][2]string{{"a", "refused"}, {"a", "answered"}}, "complete", []string{"ok"}, "again"},
	} {
		l := newLedger()
		l.enter("s", c.answer)
		if c.attempts != nil {
			j := passedJob{Session: "s", Status: c.answer.status, Response: c.answered}
			for _, a := range c.attempts {
				j.Attempts = append(j.Attempts, struct{ Upstream, Outcome string }{a[0], a[1]})
			}
			l.readSidecar([]passedJob{j})
		}
		for _, o := range c.worked {
			l.readServer("a", []workedJob{{Session: "s", Outcome: o}})
		}
		faults := l.audit("killed")
		if c.fault == "" {
			assert.Empty(t, faults, name)
		} else if assert.Len(t, faults, 1, name) {
			assert.Contains(t, faults[0], c.fault, name)
		}
	}
	l := newLedger()
	l.enter("s", answer{sent: time.Time{}})
	l.enter("s", answer{})
	l.readSidecar([]passedJob{{Session: "other"}})
	assert.Len(t, l.audit(), 3, "answered twice, in no log, and one that nobody submitted")
}
