package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/results"
)

const judging = "../../testdata/scenarios/judging"

// One small family with every rival: the verdict is shown and saved, and is the
// same however many runs play at once.
func TestJudge(t *testing.T) {
	at := filepath.Join(t.TempDir(), "verdicts.json")
	code, first, stderr := tracelab("judge", judging, "--short", "--family", "three-upstreams", "--json", at, "--jobs", "1")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "three-upstreams: ")
	assert.Contains(t, first, "expected over its best rival, of 30")
	assert.NotContains(t, first, "busy")
	var j results.Judgement
	require.NoError(t, json.Unmarshal([]byte(read(t, at)), &j))
	require.Len(t, j.Verdicts, 1)
	assert.Equal(t, 1, j.Verdicts[0].Seeds)
	assert.Len(t, j.Summary, len(results.MarkNames()))
	assert.Positive(t, j.Verdicts[0].Marks[0].Ratio.Value)

	code, again, stderr := tracelab("judge", judging, "--short", "--family", "three-upstreams", "--jobs", "4")
	require.Zero(t, code, stderr)
	assert.Equal(t, first, again)
}

func TestJudgeRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"rivals.yaml: no such file or directory", []string{"/nowhere"}},
		{`--family "x": the families are busy, cold, `, []string{judging, "--family", "x"}},
		{"no such file or directory", []string{judging, "--json", "/nowhere/x.json"}},
		{"--jobs -1 is negative", []string{judging, "--jobs=-1"}},
	} {
		code, out, stderr := tracelab(append([]string{"judge"}, c.args...)...)
		assert.Equal(t, 1, code, c.want)
		assert.Contains(t, stderr, c.want)
		assert.Empty(t, out)
	}
}

func TestJudgeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	err := (&judgeCommand{Dir: judging, Family: []string{"cold"}, Short: true}).judge(ctx, cli.Console{Out: &stdout, Err: &stderr})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.Empty(t, stdout.String())
}
