package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A published trace is read as it is.
func TestPrompts(t *testing.T) {
	jobs, err := Prompts("../../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, jobs, 12_031)
	assert.Equal(t, Job{Read: 2290, Write: 316, Blocks: []int64{0, 42, 43, 44, 45}, Submitter: 4}, jobs[3])
	assert.Equal(t, 15.0, jobs[59].Offset)
	chats, err := Prompts(file(t, `{"input_length":1500,"hash_ids":[0,1,2]}{"input_length":600,"hash_ids":[0,3]}{"input_length":2100,"hash_ids":[0,1,4,5]}`))
	require.NoError(t, err)
	for i, chat := range []int64{1, 2, 1} {
		assert.Equal(t, chat, chats[i].Submitter)
	}
	for text, want := range map[string]string{
		"": "request 1: EOF",
		`{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [0, 1]}`: "request 1: hash_ids: 2 blocks are more than input_length has: 1",
		`{"timestamp": 0, "input_length": 512, "output": 1, "hash_ids": [0]}`:           "unknown object member name",
		`{"timestamp": 9, "input_length": 1}{"timestamp": 8, "input_length": 1}`:        "request 2: timestamp 8 is not between",
		`{"timestamp": 0, "input_length": -1}`:                                          "request 1: input_length or output_length is not between",
		`{"input_length": 9, "hash_ids": [2]}`:                                          "request 1: hash_ids: the next new block must be 0, not 2",
	} {
		_, err := Prompts(file(t, text))
		assert.ErrorContains(t, err, want)
	}
}
