package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "../../testdata/scenarios/small.yaml"

// tracelab runs the command line and returns its code and outputs.
func tracelab(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

// write puts text into a file of the test's own.
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

// Invariant 7: equal scenarios and seeds give equal bytes, however many runs
// play at once; and what was saved shows the same again.
func TestSameBytes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	code, first, stderr := tracelab("simulate", small, "--jobs", "1", "--json", at("1.json"))
	require.Zero(t, code, stderr)
	require.Contains(t, first, "wait variance")
	require.Equal(t, 10, strings.Count(stderr, " jobs in "), "a line for each of 5 runs with 2 seeds:\n%s", stderr)

	code, again, stderr := tracelab("simulate", small, "--jobs", "4", "--json", at("2.json"))
	require.Zero(t, code, stderr)
	assert.Equal(t, first, again)
	assert.Equal(t, read(t, at("1.json")), read(t, at("2.json")))

	code, other, stderr := tracelab("simulate", small, "--seeds", "1")
	require.Zero(t, code, stderr)
	assert.NotEqual(t, first, other)
}

// The generator's jobs play the same from a file.
func TestTracePlaysLikeItsWorkload(t *testing.T) {
	jobs := filepath.Join(t.TempDir(), "small.jsonl")
	code, _, stderr := tracelab("generate", "--scenario", small, "--output", jobs)
	require.Zero(t, code, stderr)
	code, text, stderr := tracelab("generate", "--scenario", small)
	require.Zero(t, code, stderr)
	assert.Equal(t, read(t, jobs), text)
	assert.Equal(t, 4000, strings.Count(text, "\n"))

	const head = "name: x\nfleet: {upstreams: 4, cores: 4}\nruns: [{name: a, policy: expected, overload: threshold}]\n"
	generated := write(t, "g.yaml", head+"workload: {jobs: 4000, duration: 900}\n")
	traced := write(t, "t.yaml", head+"trace: ["+jobs+"]\n")
	code, want, stderr := tracelab("simulate", generated)
	require.Zero(t, code, stderr)
	code, got, stderr := tracelab("simulate", traced)
	require.Zero(t, code, stderr)
	tables := func(s string) string { _, after, _ := strings.Cut(s, "duration_s"); return after }
	assert.NotEmpty(t, tables(want))
	assert.Equal(t, tables(want), tables(got))

	code, part, stderr := tracelab("simulate", traced, "--scale", "0.25")
	require.Zero(t, code, stderr)
	assert.Contains(t, part, "1,000 jobs over ")
}

// What has not ended when a run is stopped is not counted.
func TestEnd(t *testing.T) {
	const head = "fleet: {upstreams: 4, cores: 4}\nruns: [{name: a, policy: random}]\nworkload: {jobs: 4000, duration: 900}\nend: "
	stopped := write(t, "s.yaml", head+"300s\n")
	code, out, stderr := tracelab("simulate", stopped)
	require.Zero(t, code, stderr)
	some := regexp.MustCompile(`\na +([0-9,]+) `).FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, some)
	assert.Regexp(t, `^1,[0-9]{3}$`, some[len(some)-1][1], "a third of the time, a third of the jobs")

	code, out, stderr = tracelab("simulate", stopped, "--scale", "0.5")
	require.Zero(t, code, stderr)
	assert.NotEmpty(t, out)
}

// A run alone comes with the one that it is compared with.
func TestChosenRuns(t *testing.T) {
	code, out, stderr := tracelab("simulate", small, "--run", "expected", "--scale", "0.1", "--seeds", "1")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "400 jobs over 1m30s")
	assert.Regexp(t, `\nexpected +threshold +expected\n`, out)
	assert.Regexp(t, `\nbaseline +none +baseline\n`, out)
	assert.NotContains(t, out, "dagor")
}

func TestSimulateRefuses(t *testing.T) {
	const run = "runs: [{name: a, policy: random}]\n"
	const job = `{"offset":1,"priority":"low","kind":"process","operators_s":1,"after":null}` + "\n"
	jobs := func(text string) string { return write(t, "t.yaml", run+"trace: ["+write(t, "t.jsonl", text)+"]\n") }
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{`--run "x": the scenario's runs are baseline; dynamic; dagor; expected; one sidecar with hints`, 1, []string{small, "--run", "x"}},
		{"--seeds -1 is not between 1 and 1000", 1, []string{small, "--seeds=-1"}},
		{"--scale 0 is not above 0 and at most 1", 1, []string{small, "--scale", "0"}},
		{"--scale 1.5 is not above 0 and at most 1", 1, []string{small, "--scale", "1.5"}},
		{"--jobs -1 is negative", 1, []string{small, "--jobs=-1"}},
		{"no such file or directory", 1, []string{small, "--json", "/nowhere/x.json"}},
		{"no such file or directory", 1, []string{"absent.yaml"}},
		{"unknown flag --frobnicate", 2, []string{small, "--frobnicate"}},
		{`expected "<scenario>"`, 2, nil},
		{"no such file or directory", 1, []string{write(t, "a.yaml", run+"trace: [absent.jsonl]\n")}},
		{"no such file or directory", 1, []string{write(t, "a.yaml", run+"reference: absent.json\n")}},
		{"t.jsonl: the trace is empty: it has no job", 1, []string{jobs("")}},
		{"t.jsonl: line 2: field offset: -1 is not between 0 and 1e+09", 1, []string{jobs(job + strings.Replace(job, `:1,`, `:-1,`, 1))}},
		{"t.jsonl: line 1: field operators_s: -1 is not between 0 and 1e+09", 1, []string{jobs(strings.Replace(job, `s":1`, `s":-1`, 1))}},
		{"t.jsonl: line 2: field offset: 0.5 goes back in time: the line before has 1", 1, []string{jobs(job + strings.Replace(job, `:1,`, `:0.5,`, 1))}},
		{"t.jsonl: no job says what it costs, in load_s, shared_s, operators_s or output_s: it cannot be simulated", 1,
			[]string{jobs(strings.Replace(job, `"operators_s":1,`, "", 1))}},
	} {
		code, out, stderr := tracelab(append([]string{"simulate"}, c.args...)...)
		assert.Equal(t, c.code, code, c.want)
		assert.Contains(t, stderr, c.want)
		assert.NotContains(t, out, "wait_s", c.want)
	}
}

func TestGenerateRefuses(t *testing.T) {
	traced := write(t, "t.yaml", "runs: [{name: a, policy: random}]\ntrace: [t.jsonl]\n")
	for want, args := range map[string][]string{
		"workload: jobs: -1 is less than 1":                                  {"--jobs=-1"},
		"workload: duration: -5 is not between 0 and 1e+09":                  {"--duration=-5"},
		`workload: pattern: unknown "x": it is schedules, steady or sources`: {"--pattern", "x"},
		"has a trace, nothing to generate":                                   {"--scenario", traced},
		"open /nowhere/x.jsonl: no such file or directory":                   {"--jobs", "10", "--pattern", "steady", "-o", "/nowhere/x.jsonl"},
	} {
		code, out, stderr := tracelab(append([]string{"generate"}, args...)...)
		assert.Equal(t, 1, code, want)
		assert.Contains(t, stderr, want)
		assert.Empty(t, out)
	}
}

func TestGenerateFlags(t *testing.T) {
	code, out, stderr := tracelab("generate", "--jobs", "30", "--pattern", "steady", "--seed", "5")
	require.Zero(t, code, stderr)
	assert.Equal(t, 30, strings.Count(out, "\n"))
	code, other, _ := tracelab("generate", "--jobs", "30", "--pattern", "steady", "--seed", "6")
	require.Zero(t, code)
	assert.NotEqual(t, out, other)
}

func TestGenerateStatic(t *testing.T) {
	args := []string{"generate", "--jobs", "500", "--duration", "6000", "--pattern", "sources"}
	code, out, stderr := tracelab(args...)
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"version":2,`)
	code, out, stderr = tracelab(append(args, "--static")...)
	require.Zero(t, code, stderr)
	assert.Equal(t, 500, strings.Count(out, `"version":1,`))
}

func TestHelp(t *testing.T) {
	code, out, _ := tracelab("--help")
	assert.Zero(t, code)
	assert.Contains(t, out, "simulate")
	code, _, stderr := tracelab("frobnicate")
	assert.Equal(t, cli.Usage, code)
	assert.Contains(t, stderr, "frobnicate")
}
