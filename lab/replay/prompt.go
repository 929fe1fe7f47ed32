package replay

import (
	"fmt"
	"strings"

	"example.org/pilotfish/lab/trace"
)

// prompt is a request to a server of a language model, as OpenAI's API has it.
type prompt struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int64     `json:"max_tokens"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// tokenBytes is how long a token is.
const tokenBytes = 4

// newPrompt has a text of the length of the job's prompt. The texts of two jobs are alike as far as their blocks are.
func newPrompt(job *trace.Job) prompt {
	var text strings.Builder
	for i, block := range job.Blocks {
		tokens := min(trace.BlockTokens, job.Read-int64(i)*trace.BlockTokens)
		number := fmt.Sprintf("%016x", uint64(block))
		text.WriteString(strings.Repeat(number, trace.BlockTokens*tokenBytes/len(number))[:tokens*tokenBytes])
	}
	return prompt{"trace", []message{{"user", text.String()}}, job.Write, true}
}
