package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/capacity"
)

// advised runs tracelab capacity over the lines of a trace.
func advised(t *testing.T, lines []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "day.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	var out, errs strings.Builder
	code = run(append([]string{"capacity", path}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// Two minutes with two jobs a second, of 3 core-seconds each: 6 cores are needed. The
// one fetch counts once.
func TestCapacityOfATrace(t *testing.T) {
	var lines []string
	for i := range 240 {
		lines = append(lines, fmt.Sprintf(`{"offset":%v,"project":"a","load_s":30,"operators_s":2,"output_s":1}`, float64(i)/2))
	}
	code, text, _ := advised(t, lines, "--upstreams", "2", "--cores", "2")
	require.Zero(t, code)
	assert.Contains(t, text, "2 upstreams with 4 cores can do 1.28 jobs/s of 3.125 core-seconds each. Told by 2m.")
	assert.Regexp(t, `(?m)^in the last minute +2 +1[45]\d % +2.00`, text)
	assert.Regexp(t, `(?m)^that serves every job alike \(mode 1\) +7 +\+5 +4\d % +2.00 +2.00 s$`, text)
	assert.Regexp(t, `(?m)^with a first byte within 3s \(mode 2\) +4 +\+2 +`, text)

	code, text, _ = advised(t, lines, "--upstreams", "2", "--cores", "2", "--json")
	require.Zero(t, code)
	var a capacity.Advice
	require.NoError(t, json.Unmarshal([]byte(text), &a))
	assert.InDelta(t, 1.5, a.Now.Full, 0.1)
}

// A capture tells which upstreams there were, and which jobs fetched.
func TestCapacityOfACapture(t *testing.T) {
	var lines []string
	for i := range 120 {
		lines = append(lines, fmt.Sprintf(
			`{"offset":%d,"project":"a","load_s":30,"operators_s":2,"upstream":"10.0.0.%d:80","cache":"cached","outcome":"answered","ttfb_s":2,"ttlb_s":2}`, i, i%3))
	}
	code, text, stderr := advised(t, lines, "--cores", "2")
	require.Zero(t, code, stderr)
	assert.Contains(t, text, "3 upstreams with 6 cores can do 3.00 jobs/s of 2.000 core-seconds each.")
	_, text, _ = advised(t, lines, "--cores", "2", "--upstreams", "5")
	assert.Contains(t, text, "5 upstreams with 10 cores ", "the flag goes over the capture")
}

func TestCapacityRefusesNonsense(t *testing.T) {
	lines := []string{`{"offset":0,"operators_s":2}`}
	for want, args := range map[string][]string{
		"names no upstream: say with --upstreams how many there are": nil,
		"must be positive":                {"--upstreams", "1", "--cores", "0"},
		"first-byte must be positive":     {"--upstreams=1", "--first-byte=-1s"},
		"upstreams, --cores and --first-": {"--upstreams=-1"},
	} {
		code, _, stderr := advised(t, lines, args...)
		assert.Equal(t, 1, code)
		assert.Contains(t, stderr, want)
	}
	code, _, stderr := advised(t, []string{`{"offset":0}`}, "--upstreams", "1")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, capacity.ErrUnknown.Error())
}
