package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "../../../testdata/scenarios/small.yaml"

// tracelab runs a command line and returns its exit code and outputs.
func tracelab(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

// write writes text to a temporary file of the test.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Invariant 7: equal scenarios and seeds give equal bytes, however many runs are simulated at
// once.
func TestSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	code, first, stderr := tracelab("simulate", small)
	require.Zero(t, code, stderr)
	require.Equal(t, 10, strings.Count(stderr, " jobs in "), "a line for each of 5 runs with 2 seeds:\n%s", stderr)

	runtime.GOMAXPROCS(4)
	code, again, stderr := tracelab("simulate", small)
	require.Zero(t, code, stderr)
	assert.Equal(t, first, again)
}

// Mistakes on the command line are reported before anything is simulated or sent.
func TestRefusedCommandLines(t *testing.T) {
	log, absent := write(t, "a.csv", "time,key,duration\n5,a,1\n"), "runs: [{name: a, policy: random}]\nreference: absent.json\n"
	judge := []string{"judge", "--root", "../../..", "--list", "no"}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "no such file or directory", []string{"simulate", "absent.yaml"}},
		{2, "unknown flag --frobnicate", []string{"simulate", small, "--frobnicate"}},
		{2, `expected "<scenario>"`, []string{"simulate"}},
		{1, "no such file or directory", []string{"simulate", write(t, "a.yaml", absent)}},
		{1, "is /nowhere the repository?", []string{"judge", "--root", "/nowhere"}},
		{1, "--family: unknown: [no]", append(judge, "--family=no")},
		{1, "--list cannot be combined with", append(judge, "--draw=x")},
		{1, "the logs name no upstream: set their number with --upstreams", []string{"whatif", log}},
		{1, `--present "x" is not one of expected, `, []string{"whatif", log, "--present", "x"}},
		{1, "--key: it has no group in parentheses to match the key", []string{"whatif", log, "--key", "x"}},
		{1, "--sidecars and --jobs must be above 0", []string{"whatif", log, "--sidecars", "0"}},
		{1, "there is no job in the log", []string{"whatif", write(t, "t.jsonl", `{"offset":0}`+"\n")}},
		{1, `--to "x" is not like http://127.0.0.1:8080`, []string{"replay", log, "--to", "x"}},
		{1, `--to "http://a/b" is not like`, []string{"replay", log, "--to", "http://a/b"}},
		{1, "--speed must be above 0", []string{"replay", log, "--to", "http://a", "--speed", "0"}},
		{1, "no job of the log has a recorded body: do the files cover the same time?", []string{"replay", log, "--to", "http://a", "--bodies", write(t, "b", "{}\n{")}},
		{2, "missing flags: --to=URL", []string{"replay", log}},
	} {
		code, out, stderr := tracelab(c.args...)
		assert.Equal(t, c.code, code, "%q", c.args)
		assert.Contains(t, stderr, c.want)
		assert.Empty(t, out)
	}
}

func TestJudgingsAreAppended(t *testing.T) {
	list := filepath.Join(t.TempDir(), "judgings.txt")
	require.NoError(t, add(list, "12: 1 families\n"))
	require.NoError(t, add(list, "34: 1 families\n"))
	assert.Equal(t, "12: 1 families\n34: 1 families\n", read(t, list))
	require.ErrorContains(t, add(filepath.Dir(list), ""), "is a directory")
}

// A result is computed once for the same sources and scenario.
func TestResultsAreKept(t *testing.T) {
	scenario := write(t, "s.yaml", "workload: {jobs: 20, duration: 60, pattern: steady}\nruns: [{name: a, policy: random}]\n")
	result := filepath.Join(t.TempDir(), "result.txt")
	play := func() string {
		code, out, stderr := tracelab("simulate", "--root", "../../..", "--result", result, scenario)
		require.Zero(t, code, stderr)
		assert.Empty(t, out)
		return stderr
	}
	assert.Contains(t, play(), "1/1 a, seed 1")
	first := read(t, result)
	assert.Regexp(t, "^sources: [0-9a-f]{16}\n\ns\n", first)
	assert.Equal(t, result+" is up to date\n", play())
	require.NoError(t, os.WriteFile(scenario, []byte("workload: {jobs: 30, duration: 60, pattern: steady}\nruns: [{name: a, policy: random}]\n"), 0o600))
	assert.Contains(t, play(), "1/1 a, seed 1")
	assert.NotEqual(t, first, read(t, result))
}
