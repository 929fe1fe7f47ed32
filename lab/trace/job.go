// Package trace holds the record of one job, and what reads it from files: a trace file
// of its own form, or the logs of sidecars. Package workload invents such jobs, the
// simulator plays them, and the replay sends them to real sidecars.
//
// A trace file is JSON Lines: one object for each job, times in seconds from the
// start of the trace. What is not known is left out.
package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/pkg/selection"
)

// Job is one job. A field that is zero is unknown, or nothing, and is left out
// of the file, except where its comment says otherwise.
type Job struct {
	// Offset is when the submitter sends the job, in seconds from the start of
	// the trace. Always written.
	Offset float64 `json:"offset"`
	// Project is whose data the job needs; "" is a job without affinity.
	Project Project `json:"project,omitzero"`
	// Priority is low when the file names none. Always written.
	Priority selection.Priority `json:"priority"`
	// Kind is process when the file names none.
	Kind Kind `json:"kind,omitzero"`
	// Version is the generation of the project's data. An import raises it, and
	// makes useless what is cached of older ones.
	Version int64 `json:"version,omitzero"`
	// Shared names the shared rules. Jobs of one project, one version and
	// equal names share one SharedOperators joblet; "" has none.
	Shared string `json:"shared,omitzero"`
	// Channel is the export channel, from 1 within its project.
	Channel int64 `json:"channel,omitzero"`

	// Load, SharedRules, Operators and Output are the core-seconds of the
	// job's four joblets at an upstream (the thesis, 3.4): FeedSource, which
	// a cached project saves; SharedOperators; Operators; OutputFeed.
	Load        float64 `json:"load_s,omitzero"`
	SharedRules float64 `json:"shared_s,omitzero"`
	Operators   float64 `json:"operators_s,omitzero"`
	Output      float64 `json:"output_s,omitzero"`
	// Bytes is what the project's data takes in a cache.
	Bytes int64 `json:"bytes,omitzero"`

	// Needs is the data that the job needs besides the project's.
	Needs []Need `json:"needs,omitempty"`
	// Read and Write are the tokens of a prompt to a language model, and of its answer. Blocks
	// names the prompt's blocks of BlockTokens tokens, the last of which may be shorter: equal names are
	// equal blocks with equal blocks before them.
	Read   int64   `json:"read_tokens,omitzero"`
	Write  int64   `json:"write_tokens,omitzero"`
	Blocks []int64 `json:"blocks,omitempty"`

	Timeouts Timeouts `json:"timeouts,omitzero"`
	// Submitter is the number of the submitter that sends the job. Each has a
	// sidecar of its own.
	Submitter int64 `json:"submitter,omitzero"`
	// After is the line of an earlier job that must end before this one is sent;
	// 0 is none.
	After Line `json:"after,omitzero"`
}

// Need is data with a name of its own, which other jobs may need, too.
type Need struct {
	Name Project `json:"name"`
	// Load is the core-seconds of a fetch, Bytes what the data takes in a cache.
	Load  float64 `json:"load_s"`
	Bytes int64   `json:"bytes"`
}

// maxNeeds bounds what a job needs.
const maxNeeds = 64

// Work is the job's core-seconds when nothing of it is cached or shared; 0 when unknown.
func (j *Job) Work() float64 { return j.Load + j.SharedRules + j.Operators + j.Output }

// Timeouts are the bounds that a job sets itself, in seconds; 0 is not given.
type Timeouts struct {
	// Queue bounds the wait for a core, Evaluate the processing up to the
	// first byte of the answer, Stream the answer.
	Queue    float64 `json:"queue,omitzero"`
	Evaluate float64 `json:"evaluate,omitzero"`
	Stream   float64 `json:"stream,omitzero"`
}

// Line is the number of a line, and so of a job, counted from 1.
type Line int64

// Project is the text of a project's identifier. As in a job, the integer
// 12345 and the string "12345" are the same project. It is written as a string.
type Project string

// UnmarshalJSONFrom reads an integer, a string, or null for no project.
func (p *Project) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	switch token.Kind() {
	case 'n':
		text = ""
	case '"':
	case '0':
		if text == "-0" || strings.ContainsAny(text, ".eE") {
			return fmt.Errorf("%.40s is not an integer: a project is an integer or a string", text)
		}
	default:
		return errors.New("a project is an integer or a string")
	}
	if len(text) > MaxText {
		return fmt.Errorf("a project of %d bytes is longer than %d", len(text), MaxText)
	}
	*p = Project(text)
	return nil
}

// Kind is what a job asks of an upstream.
type Kind uint8

const (
	// Process runs a project's rules: all four joblets.
	Process Kind = iota
	// Prefetch only loads a project's data into the cache (the thesis, 3.2).
	Prefetch
)

// MarshalText returns the word in a trace.
func (k Kind) MarshalText() ([]byte, error) {
	return []byte([...]string{"process", "prefetch"}[k]), nil
}

// UnmarshalText reads the word.
func (k *Kind) UnmarshalText(word []byte) error {
	switch string(word) {
	case "process":
		*k = Process
	case "prefetch":
		*k = Prefetch
	default:
		return fmt.Errorf("unknown kind %.40q: it is process or prefetch", word)
	}
	return nil
}

// Source yields jobs in the order of their offsets.
type Source interface {
	// Next returns the next job, or io.EOF after the last.
	Next() (Job, error)
}

// List is a source in memory.
type List []Job

// Next takes the first job out of the list.
func (l *List) Next() (Job, error) {
	if len(*l) == 0 {
		return Job{}, io.EOF
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, nil
}
