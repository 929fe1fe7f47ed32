package rules

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Priority says whether a person waits for the job (high) or a schedule does
// (low).
type Priority string

const (
	High Priority = "high"
	Low  Priority = "low"
)

// Bounds on what one job may ask for.
const (
	// MaxOperators bounds the operators of a job, shared ones included.
	MaxOperators = 10_000
	// MaxConditions and MaxActions bound those of all its operators together.
	MaxConditions = 100_000
	MaxActions    = 100_000
	// MaxDepth bounds how deep conditions nest through children.
	MaxDepth = 100
	// MaxTimeout bounds each timeout.
	MaxTimeout = 7 * 24 * time.Hour
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

// Timeouts are the longest times a job may spend in each of its phases. Zero
// means that the request gave none.
type Timeouts struct {
	Queue    time.Duration // from reception to the start of its first joblet
	Evaluate time.Duration // from there to its last joblet's end
	Stream   time.Duration // sending the answer
}

// Or gives the timeouts of a request, and where it gave none those of other.
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
	// Requests also carry presentation and debugging options, which change
	// nothing here. Below this level an unknown member is an error, because
	// ignoring it would change what a rule means.
	Options jsontext.Value `json:",embed"`
}

type wireTimeouts struct {
	Queue    *float64 `json:"queue_seconds"`
	Evaluate *float64 `json:"evaluate_seconds"`
	Stream   *float64 `json:"stream_seconds"`
}

// ParseJob reads a request. Its errors are all *Malformed.
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

// ValidProject says whether id can name a project: it also names a file, so
// nothing that could leave a directory is allowed.
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
		if *one.seconds <= 0 || *one.seconds > MaxTimeout.Seconds() || d <= 0 {
			return t, malformed(one.path, "want more than 0 and at most %v seconds, got %v",
				MaxTimeout.Seconds(), *one.seconds)
		}
		*one.to = d
	}
	return t, nil
}
