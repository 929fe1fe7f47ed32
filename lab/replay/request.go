package replay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/lab/trace"
)

// costHeader tells a reference server that trusts it what a job costs.
const costHeader = "X-Cost"

// body is a job as a submitter sends it.
type body struct {
	Session   string        `json:"session_id"`
	Project   trace.Project `json:"project_id,omitzero"`
	Priority  string        `json:"priority"`
	Timeouts  timeouts      `json:"timeouts,omitzero"`
	Shared    []operator    `json:"shared_operators,omitempty"`
	Operators []operator    `json:"operators,omitempty"`
}

type timeouts struct {
	Queue    float64 `json:"queue_seconds,omitzero"`
	Evaluate float64 `json:"evaluate_seconds,omitzero"`
	Stream   float64 `json:"stream_seconds,omitzero"`
}

// operator is a rule that costs almost nothing. Its text tells it from others.
type operator struct {
	Name    string   `json:"name"`
	Actions []action `json:"actions"`
}

type action struct {
	Field string `json:"field"`
	Kind  string `json:"action"`
	Value value  `json:"value"`
}

type value struct {
	Type string `json:"type"`
	Text string `json:"value"`
}

func mark(name, text string) []operator {
	return []operator{{Name: name, Actions: []action{{Field: name, Kind: "set", Value: value{"static", text}}}}}
}

// content is what a job sends, and where. Jobs that share rules have the same text there. The rules of its channel
// have a text that no other job has.
func content(name string, line trace.Line, job *trace.Job) (path string, content any) {
	if len(job.Blocks) > 0 {
		return "/v1/chat/completions", newPrompt(job)
	}
	b := body{
		Session:  fmt.Sprintf("%s-%d", name, line),
		Project:  job.Project,
		Priority: job.Priority.String(),
		Timeouts: timeouts(job.Timeouts),
	}
	if job.Prefetch { // it applies no rules
		return "/v1/jobs", b
	}
	b.Operators = mark("channel", b.Session)
	if job.SharedRules > 0 {
		b.Shared = mark("shared", name+" "+job.Shared)
	}
	return "/v1/jobs", b
}

// request is a job's HTTP request to a target.
func request(ctx context.Context, name, target string, line trace.Line, job *trace.Job) (*http.Request, error) {
	path, content := content(name, line, job)
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", line, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", line, err)
	}
	r.GetBody = nil // without it the client does not retry by itself, which nobody would see
	r.Header.Set("Content-Type", "application/json")
	if job.Work() > 0 {
		r.Header.Set(costHeader, fmt.Sprintf("fetch=%v,shared=%v,operators=%v,output=%v,bytes=%d",
			duration(job.Load), duration(job.SharedRules), duration(job.Operators), duration(job.Output), max(1, job.Bytes)))
	}
	return r, nil
}
