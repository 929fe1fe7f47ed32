// Package rules is the rule processing itself: it reads a job (listing 1 of the
// thesis shows one), compiles the operators for a feed's columns and applies them.
// It is pure: the same feed and operators always give the same feed.
//
// A feed is text. A field that an item lacks equals an empty field, and a text is
// read as a number only where a filter compares.
package rules

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Priority is high when a person waits for the job, and low when a schedule sent
// it.
type Priority string

const (
	High Priority = "high"
	Low  Priority = "low"
)

// Bounds on what one job may ask for.
const (
	// maxOperators bounds the operators of a job, shared ones included.
	maxOperators = 10_000
	// maxConditions and maxActions bound those of all its operators together.
	maxConditions = 100_000
	maxActions    = 100_000
	// maxDepth bounds how deep conditions nest through children.
	maxDepth = 100
	// maxTimeout bounds each timeout.
	maxTimeout = 7 * 24 * time.Hour
)

// Job is a rule processing request.
type Job struct {
	Session  string   // for the log; may be empty
	Project  string   // letters, digits, '-' and '_'
	Priority Priority // Low when the request gives none
	Timeouts Timeouts
	Shared   Operators // applied first, and computed once for all jobs that share them
	Channel  Operators // those of one export channel
}

// Timeouts bound the phases of a job. Zero means that the job gives no timeout.
type Timeouts struct {
	Queue    time.Duration // from reception to the start of its first joblet
	Evaluate time.Duration // from there to its last joblet's end
	Stream   time.Duration // sending the answer
}

// Or returns t, with the timeouts of other in place of those that t lacks.
func (t Timeouts) Or(other Timeouts) Timeouts {
	return Timeouts{
		Queue:    cmp.Or(t.Queue, other.Queue),
		Evaluate: cmp.Or(t.Evaluate, other.Evaluate),
		Stream:   cmp.Or(t.Stream, other.Stream),
	}
}

type wireJob struct {
	Session  string         `json:"session_id"`
	Project  jsontext.Value `json:"project_id"`
	Priority string         `json:"priority"`
	Timeouts wireTimeouts   `json:"timeouts"`
	Shared   []wireOperator `json:"shared_operators"`
	Channel  []wireOperator `json:"operators"`
	// Jobs also carry presentation and debugging options, which have no effect
	// here. At deeper levels an unknown member is an error: to ignore it would
	// change the meaning of a rule.
	Options jsontext.Value `json:",embed"`
}

type wireTimeouts struct {
	Queue    *float64 `json:"queue_seconds"`
	Evaluate *float64 `json:"evaluate_seconds"`
	Stream   *float64 `json:"stream_seconds"`
}

// ParseJob reads a job. All its errors are *Malformed.
func ParseJob(body []byte) (Job, error) {
	var wire wireJob
	if err := decode(body, &wire); err != nil {
		return Job{}, err
	}
	job := Job{Session: wire.Session}
	if len(wire.Session) > 256 {
		return Job{}, malformed("/session_id", "longer than 256 bytes")
	}
	var err error
	if job.Project, err = parseProject(wire.Project); err != nil {
		return Job{}, err
	}
	if job.Priority, err = parsePriority(wire.Priority); err != nil {
		return Job{}, err
	}
	if job.Timeouts, err = wire.Timeouts.parse(); err != nil {
		return Job{}, err
	}
	if err := wire.checkBounds(); err != nil {
		return Job{}, err
	}
	if job.Shared, err = parseOperators("/shared_operators", wire.Shared); err != nil {
		return Job{}, err
	}
	if job.Channel, err = parseOperators("/operators", wire.Channel); err != nil {
		return Job{}, err
	}
	return job, nil
}

// ValidProject reports whether id can name a project. The name is also part of a
// file's name, so no character is allowed that could lead out of a directory.
func ValidProject(id string) bool {
	return id != "" && len(id) <= 128 && strings.Trim(id,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func parseProject(value jsontext.Value) (string, error) {
	const path = "/project_id"
	var id string
	switch value.Kind() {
	case jsontext.KindString:
		unquoted, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return "", malformed(path, "not a valid string")
		}
		id = string(unquoted)
	case jsontext.KindNumber:
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return "", malformed(path, "want an integer of at most 64 bits, got %.40s", value)
		}
		id = strconv.FormatInt(n, 10)
	case jsontext.KindInvalid: // absent
		return "", malformed(path, "missing")
	default:
		return "", malformed(path, "want an integer or a string, got %s", kindName(value.Kind()))
	}
	if !ValidProject(id) {
		return "", malformed(path, "want an integer, or up to 128 letters, digits, '-' and '_', got %.40q", id)
	}
	return id, nil
}

func parsePriority(text string) (Priority, error) {
	switch p := Priority(text); p {
	case "":
		return Low, nil
	case High, Low:
		return p, nil
	}
	return "", malformed("/priority", `want "high" or "low", got %.40q`, text)
}

func (w wireTimeouts) parse() (t Timeouts, err error) {
	for _, one := range []struct {
		path    jsontext.Pointer
		seconds *float64
		to      *time.Duration
	}{
		{"/timeouts/queue_seconds", w.Queue, &t.Queue},
		{"/timeouts/evaluate_seconds", w.Evaluate, &t.Evaluate},
		{"/timeouts/stream_seconds", w.Stream, &t.Stream},
	} {
		if one.seconds == nil {
			continue
		}
		d := time.Duration(*one.seconds * float64(time.Second))
		if *one.seconds <= 0 || *one.seconds > maxTimeout.Seconds() || d <= 0 {
			return t, malformed(one.path, "want more than 0 and at most %v seconds, got %v",
				maxTimeout.Seconds(), *one.seconds)
		}
		*one.to = d
	}
	return t, nil
}

// ParsePrefetch reads a prefetch: a job without operators. All its errors are
// *Malformed.
func ParsePrefetch(body []byte) (Job, error) {
	job, err := ParseJob(body)
	if err != nil {
		return Job{}, err
	}
	if len(job.Shared.list)+len(job.Channel.list) > 0 {
		return Job{}, malformed("", "a prefetch applies no operators")
	}
	return job, nil
}
