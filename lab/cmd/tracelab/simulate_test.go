package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
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

// Jobs that have not ended when a run is stopped are not counted.
func TestEnd(t *testing.T) {
	const text = "fleet: {upstreams: 4, cores: 4}\nruns: [{name: a, policy: random}]\nworkload: {jobs: 4000, duration: 900}\nend: 300s\n"
	code, out, stderr := tracelab("simulate", write(t, "s.yaml", text))
	require.Zero(t, code, stderr)
	some := regexp.MustCompile(`\na +([0-9,]+) `).FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, some)
	assert.Regexp(t, `^1,[0-9]{3}$`, some[len(some)-1][1], "a third of the time, a third of the jobs")
}

func TestSimulateRefuses(t *testing.T) {
	const run = "runs: [{name: a, policy: random}]\n"
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"no such file or directory", 1, []string{"absent.yaml"}},
		{"unknown flag --frobnicate", 2, []string{small, "--frobnicate"}},
		{`expected "<scenario>"`, 2, nil},
		{"no such file or directory", 1, []string{write(t, "a.yaml", run+"reference: absent.json\n")}},
	} {
		code, out, stderr := tracelab(append([]string{"simulate"}, c.args...)...)
		assert.Equal(t, c.code, code, c.want)
		assert.Contains(t, stderr, c.want)
		assert.NotContains(t, out, "wait_s", c.want)
	}
}
