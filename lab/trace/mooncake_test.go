package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A published trace is read as it is, and is written as ours.
func TestMooncake(t *testing.T) {
	file, err := Open("../testdata/traces/mooncake-conversation.jsonl.gz")
	require.NoError(t, err)
	in, err := file.Jobs(60)
	require.NoError(t, err)
	defer in.Close()
	var jobs []Job
	require.NoError(t, Each(in, func(j *Job) error {
		jobs = append(jobs, *j)
		return nil
	}))
	require.Len(t, jobs, 60)
	assert.Equal(t, Job{Read: 2290, Write: 316, Blocks: []int64{0, 42, 43, 44, 45}}, jobs[3])
	assert.Equal(t, 15.0, jobs[59].Offset)
	again, err := readAll(write(t, jobs))
	require.NoError(t, err)
	assert.Equal(t, jobs, again)

	_, err = readAll(`{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}`)
	assert.EqualError(t, err, "t.jsonl: line 1: field blocks: 2 is not between 0 and 1")
	_, err = readAll(`{"timestamp": 0, "input_length": 512, "output": 1, "hash_ids": [1]}`)
	assert.EqualError(t, err, "t.jsonl: line 1: field output: unknown field")
}
