package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A published trace is read as it is.
func TestPrompts(t *testing.T) {
	jobs, err := Prompts("../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, jobs, 12_031)
	assert.Equal(t, Job{Read: 2290, Write: 316, Blocks: []int64{0, 42, 43, 44, 45}}, jobs[3])
	assert.Equal(t, 15.0, jobs[59].Offset)
	for text, want := range map[string]string{
		"": "request 1: EOF",
		`{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}`: "request 1: hash_ids: 2 blocks are more than 1",
		`{"timestamp": 0, "input_length": 512, "output": 1, "hash_ids": [1]}`:           "unknown object member name",
		`{"timestamp": 9, "input_length": 1}{"timestamp": 8, "input_length": 1}`:        "request 2: timestamp 8 is not between",
		`{"timestamp": 0, "input_length": -1}`:                                          "request 1: a length is not between",
	} {
		_, err := Prompts(file(t, text))
		assert.ErrorContains(t, err, want)
	}
}
