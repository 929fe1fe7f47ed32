// Package rules implements the rules: it reads a job (such as listing 1 of the
// thesis) and applies its operators to a feed. It is pure: equal feeds
// and operators always give equal results.
//
// All fields are text. A missing field equals an empty field, and a text is
// parsed as a number only by filters that compare.
package rules

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of one job.
const (
	maxOperators = 10_000           // including shared ones
	maxSession   = 256              // bytes
	maxTimeout   = 7 * 24 * 60 * 60 // seconds
)

// Job is a rule processing request.
type Job struct {
	Session  string    `json:"session_id"` // for the log; may be empty
	Project  Project   `json:"project_id"`
	Priority Priority  `json:"priority"` // Low if it is missing
	Timeouts Timeouts  `json:"timeouts"`
	Shared   Operators `json:"shared_operators"` // applied first, and computed once for all jobs with equal ones
	Channel  Operators `json:"operators"`        // of one export channel
	// Presentation is how the result is sorted and filtered.
	Presentation Presentation `json:"presentation"`
	// CacheResult is whether results other than the project's data are cached; true if it is missing.
	CacheResult *bool `json:"cache_result"`
	// Other members at this level, such as debugging options, are ignored. At deeper levels an unknown member is an error,
	// because ignoring it would change the meaning of a rule.
	Options jsontext.Value `json:",embed"`
}

// Priority is high if a person waits for the job, and low if a schedule sent it.
type Priority string

const (
	High Priority = "high"
	Low  Priority = "low"
)

// Timeouts are the timeouts of the phases of a job in seconds; 0 is none.
type Timeouts struct {
	Queue    float64 `json:"queue_seconds"`    // from reception to the start of its first joblet
	Evaluate float64 `json:"evaluate_seconds"` // from the start of its first joblet to the end of its last
	Stream   float64 `json:"stream_seconds"`   // sending the response
}

// Project names a project: letters, digits, '-' and '_'.
type Project string

// Valid reports whether p is a valid name of a project. It is also part of a file
// name, so no character is allowed that could lead out of the folder.
func (p Project) Valid() bool {
	return p != "" && len(p) <= 128 && strings.Trim(string(p),
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// UnmarshalJSONFrom reads an integer or a string.
func (p *Project) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	*p = Project(token.String())
	if kind := token.Kind(); kind != jsontext.KindString && kind != jsontext.KindNumber || !p.Valid() {
		return malformed(dec.StackPointer(), "want an integer, or up to 128 letters, digits, '-' and '_', got %.40q", *p)
	}
	return nil
}

// ParseJob reads a job. All its errors are *Malformed.
func ParseJob(body []byte) (Job, error) {
	var job Job
	if err := decode(body, &job); err != nil {
		return Job{}, err
	}
	job.Priority = cmp.Or(job.Priority, Low)
	switch t := job.Timeouts; {
	case job.Project == "":
		return Job{}, malformed("/project_id", "missing")
	case job.Priority != High && job.Priority != Low:
		return Job{}, malformed("/priority", `want "high" or "low", got %.40q`, job.Priority)
	case len(job.Session) > maxSession:
		return Job{}, malformed("/session_id", "longer than %d bytes", maxSession)
	case min(t.Queue, t.Evaluate, t.Stream) < 0 || max(t.Queue, t.Evaluate, t.Stream) > maxTimeout:
		return Job{}, malformed("/timeouts", "want 0 to %d seconds each", maxTimeout)
	case len(job.Presentation.Sort) > maxSortKeys:
		return Job{}, malformed("/presentation/sort_by", "a result is sorted by %d fields at most", maxSortKeys)
	case len(job.Presentation.Omit) > maxColumns:
		return Job{}, malformed("/presentation/omit", "%d fields at most", maxColumns)
	case len(job.Shared)+len(job.Channel) > maxOperators:
		return Job{}, malformed("/operators", "a job may have %d operators", maxOperators)
	}
	return job, nil
}
