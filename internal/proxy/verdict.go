package proxy

import (
	"errors"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// verdict is the result of one attempt for its job.
type verdict struct {
	kind     verdictKind
	response *upstreamclient.Response // open if kind is pass, closed if kind is keep
	body     []byte                   // the bytes read of its body
	partial  bool                     // kind is keep, and the rest of the body was not received

	// Set if kind is keep or lost:
	dispatch.Failure
	err  error
	next dispatch.Next
}

type verdictKind uint8

const (
	// lost, the zero value: there is no response to forward.
	_ verdictKind = iota
	// keep: the response is forwarded if no later attempt gets a better one.
	keep
	// pass: the response is forwarded.
	pass
)

// upstreamRan reports whether the upstream of a kept response has run the job. Otherwise the
// response says that the job was not started.
func (v *verdict) upstreamRan() bool { return v.Outcome == pool.Failed }

// worth ranks kept responses: one of an upstream that ran the job is worth more than one that says "not started", and a
// complete response more than a partial one.
func (v *verdict) worth() (rank int) {
	if v.upstreamRan() {
		rank += 2
	}
	if !v.partial {
		rank++
	}
	return rank
}

// attemptSummary summarises the failed attempts of a job.
type attemptSummary struct {
	begun    bool     // an upstream may have begun the job
	kept     *verdict // the last of the responses that are worth most, or nil
	last     error    // error of the last attempt
	noAnswer error    // error of the last attempt that failed because of the upstream
}

func (l *attemptSummary) add(v *verdict) {
	l.begun = l.begun || v.Progress == dispatch.Begun
	if l.last = v.err; errors.Is(v.err, record.ErrNoAnswer) {
		l.noAnswer = v.err
	}
	if v.kind == keep && (l.kept == nil || v.worth() >= l.kept.worth()) {
		l.kept = v
	}
}

// ran reports whether an upstream has run the job, or may have begun it.
func (l *attemptSummary) ran() bool { return l.begun || l.kept != nil && l.kept.upstreamRan() }
