package replay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/lab/trace"
)

// object is JSON.
type object = map[string]any

// mark returns a list of one rule that costs almost nothing. The text makes it unique.
func mark(name, text string) []object {
	set := object{"field": name, "action": "set", "value": object{"type": "static", "value": text}}
	return []object{{"name": name, "actions": []object{set}}}
}

// content returns the path and the body of a job's request. Jobs with the same shared rules send equal shared rules.
// The other rules are unique.
func content(line trace.Line, job *trace.Job) (path string, content object) {
	if len(job.Blocks) > 0 {
		return "/v1/chat/completions", newPrompt(job)
	}
	session := fmt.Sprint(line)
	content = object{"session_id": session, "priority": job.Priority.String()}
	if job.Project != "" {
		content["project_id"] = job.Project
	}
	if t := job.Timeouts; t != (trace.Timeouts{}) {
		content["timeouts"] = object{"queue_seconds": t.Queue, "evaluate_seconds": t.Evaluate, "stream_seconds": t.Stream}
	}
	if !job.Prefetch { // a prefetch applies no rules
		content["operators"] = mark("channel", session)
	}
	if !job.Prefetch && job.SharedRules > 0 {
		content["shared_operators"] = mark("shared", job.Shared)
	}
	return "/v1/jobs", content
}

// tokenBytes is the length of a token in bytes.
const tokenBytes = 4

// newPrompt returns a chat completion request of OpenAI's API with a text of the prompt's length. The texts of two jobs
// have the same common prefix as their blocks.
func newPrompt(job *trace.Job) object {
	var text strings.Builder
	for i, block := range job.Blocks {
		tokens := min(trace.BlockTokens, job.Read-int64(i)*trace.BlockTokens)
		number := fmt.Sprintf("%016x", uint64(block))
		text.WriteString(strings.Repeat(number, trace.BlockTokens*tokenBytes/len(number))[:tokens*tokenBytes])
	}
	return object{
		"model": "trace", "messages": []object{{"role": "user", "content": text.String()}}, "max_tokens": job.Write, "stream": true,
	}
}

// request returns a job's HTTP request to a target.
func request(ctx context.Context, target string, line trace.Line, job *trace.Job) (*http.Request, error) {
	path, content := content(line, job)
	text, err := json.Marshal(content, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", line, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", line, err)
	}
	r.GetBody = nil // otherwise the client can retry on its own, which would not be counted
	r.Header.Set("Content-Type", "application/json")
	if job.Work() > 0 { // for a reference server that trusts it
		r.Header.Set("X-Cost", fmt.Sprintf("fetch=%v,shared=%v,operators=%v,output=%v,bytes=%d", trace.Duration(job.Load),
			trace.Duration(job.SharedRules), trace.Duration(job.Operators), trace.Duration(job.Output), max(1, job.Bytes)))
	}
	return r, nil
}
