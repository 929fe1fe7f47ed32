package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/rivals"
)

func scenarios(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// Every shipped scenario can be loaded, and the policies and references that it names exist.
func TestShippedScenariosLoad(t *testing.T) {
	for _, path := range scenarios(t) {
		s, err := Load(path)
		require.NoError(t, err, path)
		for i := range s.Runs {
			_, err := s.setup(&s.Runs[i], 1)
			require.NoError(t, err, path)
		}
	}
}

// The thesis's scenarios have the thesis's parameters, on which the calibration is based.
func TestThesisScenarios(t *testing.T) {
	for file, rows := range map[string]int{"thesis.yaml": 6, "production.yaml": 1} {
		s, err := Load(filepath.Join("..", "..", "testdata", "scenarios", file))
		require.NoError(t, err)
		found := 0
		assert.Equal(t, 2_879_676, s.Workload.Jobs)
		assert.Equal(t, 86400.0, s.Workload.Duration)
		assert.Equal(t, file == "thesis.yaml", s.Workload.Static)
		assert.Equal(t, file == "thesis.yaml", s.End == 22*time.Hour+48*time.Minute, "the end of 10.1")
		timeouts, backlog := 0, 0
		for i := range s.Runs {
			r := &s.Runs[i]
			if r.Overload == "threshold" {
				assert.Equal(t, 1.0, r.Reset, "it has no hysteresis")
			}
			if backlog = r.Fleet.Backlog; r.Sidecars.CountTimeouts && backlog > 0 {
				timeouts++
			}
			if _, ok := s.published.results[of(r.Name, "low", "wait_s")]; ok {
				found++
				assert.Len(t, s.published.variances[r.Name], 1+14, "of all and of each server")
			}
			assert.Equal(t, 14, r.Fleet.Upstreams)
			assert.Equal(t, 1, r.Sidecars.Count)
			assert.Equal(t, 5*time.Second, r.Sidecars.Interval)
		}
		assert.Equal(t, 1, timeouts, "runs with a connection timeout")
		if without := s.Runs[0]; len(s.Runs) > 1 {
			without.Name, without.Fleet.Backlog = "Baseline, connection timeout", backlog
			assert.Equal(t, without, s.Runs[len(s.Runs)-1], "with and without: nothing else differs")
		}
		assert.Equal(t, rows, found, "runs beside rows of the reference in %s", file)
	}
}

func parseText(t *testing.T, text string) (*Scenario, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("s.yaml", []byte(text), 0o600))
	return Load("s.yaml")
}

// The keys of a run override those of the scenario; the others are kept.
func TestRunsOverride(t *testing.T) {
	s, err := parseText(t, `
workload: {jobs: 1000, duration: 600, pattern: steady}
fleet: {upstreams: 8, cache: 2GiB, stops: {first: 1m}}
sidecars: {count: 40, hints: true}
end: 5m
runs:
  - {name: a, policy: expected, sidecars: {interval: 20s, hints: false}}
  - {name: b, policy: dynamic, overload: dagor, stalled: 50, ignore_wait: true, fleet: {upstreams: 10, stops: {first: 2m}}}
`)
	require.NoError(t, err)
	a, b := &s.Runs[0], &s.Runs[1]
	x, err := s.setup(a, 1)
	require.NoError(t, err)
	assert.Equal(t, 40, x.Sidecars.Count)
	assert.Equal(t, 20*time.Second, x.Sidecars.Interval)
	assert.False(t, x.Sidecars.Hints)
	assert.Equal(t, settings.Size(2<<30), x.Fleet.Cache)
	assert.Equal(t, 8, x.Fleet.Upstreams)
	assert.Equal(t, time.Minute, x.Fleet.Stops.First)
	assert.Equal(t, 5*time.Minute, x.End)

	y, err := s.setup(b, 1)
	require.NoError(t, err)
	assert.Equal(t, 10, y.Fleet.Upstreams)
	assert.Equal(t, 2*time.Minute, y.Fleet.Stops.First)
	detector := y.Detector()
	assert.Equal(t, overload.Level(0.95), detector(overload.Sample{Stalled: 51}))
	assert.Greater(t, detector(overload.Sample{Stalled: 50, Wait: 100}), overload.Level(0.95), "the wait does not count")
}

func TestScenarioFaults(t *testing.T) {
	const run = "runs: [{name: a, policy: random}]\n"
	for text, want := range map[string]string{
		"":                    "s.yaml:1:1: runs: at least one run is required",
		"runs: [":             "s.yaml:2:1: not YAML: while parsing a flow node: did not find expected node content",
		run + "seeds: -1":     "s.yaml:2:8: seeds: -1 is not between 1 and 1000",
		run + "end: -1h":      "s.yaml:2:6: end: -1h0m0s must not be negative",
		"runs: [{policy: x}]": "s.yaml:1:8: runs[0].name: a name is required\ns.yaml:1:17: runs[0].policy: \"x\" is not one of " + strings.Join(rivals.All(), ", "),
		"runs: [{name: a, policy: random, x: 1}]": "s.yaml:1:34: runs[0].x: unknown key; those known here are name, overload, stalled, reset, ignore_wait, policy, times, workload, fleet, sidecars",

		"runs: [{name: a, policy: random}, {name: a, policy: random}]": `s.yaml:1:42: runs[1].name: "a" is the name of two runs`,
		"runs: [{name: a, policy: random, overload: x}]":               `s.yaml:1:44: runs[0].overload: "x" is not one of none, threshold, dagor, adaptive, breakwater`,
		"runs: [{name: a, policy: random, stalled: -5}]":               "s.yaml:1:43: runs[0].stalled: -5 must be a finite number above 0",
		"runs: [{name: a, policy: random, times: {rank: 2}}]":          "s.yaml:1:41: runs[0].times: is for the policy expected, not for random",
		"runs: [{name: a, policy: expected, times: {rank: -2}}]":       "s.yaml:1:43: runs[0].times: rank: -2: the policy expected has no such constant, or the factor is below 0",
		"runs: [{name: a, policy: expected, times: {bank: 2}}]":        "s.yaml:1:43: runs[0].times: bank: 2: the policy expected has no such constant, or the factor is below 0",
		"runs: [{name: a, policy: random, ignore_wait: true}]":         "s.yaml:1:47: runs[0].ignore_wait: is for the overload policy dagor, not for none",
		"runs: [{name: a, policy: random, fleet: {cores: -1}}]":        "s.yaml:1:49: runs[0].fleet.cores: -1 is not between 1 and 65536",
		"runs: [{name: a, policy: random, sidecars: {count: -1}}]":     "s.yaml:1:52: runs[0].sidecars.count: -1 is not between 1 and 100000",
		"runs: [{name: a, policy: random, workload: {jobs: -1}}]":      "s.yaml:1:51: runs[0].workload.jobs: -1 must be at least 1",
		run + "workload: {jobs: -1}":                                   "s.yaml:2:18: workload.jobs: -1 must be at least 1",
		run + "fleet: {upstreams: 10001}":                              "s.yaml:2:20: fleet.upstreams: 10001 is not between 1 and 10000",
		run + "fleet: {backlog: -1}":                                   "s.yaml:2:18: fleet.backlog: -1 is not between 0 and 1073741824",
		run + "fleet: {stops: {first: -1s}}":                           "s.yaml:2:24: fleet.stops.first: -1s must not be negative",
		run + "fleet: {stops: {known: true}}":                          "s.yaml:2:16: fleet.stops.first: without it, no upstream stops",
		run + "warm_up: -1s":                                           "s.yaml:2:10: warm_up: -1s must not be negative",
		run + "sidecars: {count: -1}":                                  "s.yaml:2:19: sidecars.count: -1 is not between 1 and 100000",
		run + "sidecars: {interval: -5s}":                              "s.yaml:2:22: sidecars.interval: -5s must be positive",
	} {
		_, err := parseText(t, text)
		assert.EqualError(t, err, want, text)
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzScenario(f *testing.F) {
	for _, path := range scenarios(f) {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseText(t, text)
		if err != nil {
			return
		}
		for i := range s.Runs {
			if _, err := s.setup(&s.Runs[i], 1); err != nil {
				t.Fatalf("accepted, but then: %v", err)
			}
		}
	})
}

// A reference has numbers in rows of equal length, in at least one file.
func TestReferenceFaults(t *testing.T) {
	const text = "reference: r\nruns: [{name: a, policy: random}]\n"
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("s.yaml", []byte(text), 0o600))
	_, err := Load("s.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
	for content, want := range map[string]string{
		"run,slope\na,x\n":   `r-slopes.csv:2: strconv.ParseFloat: parsing "x": invalid syntax`,
		"run,slope\na,1,2\n": "r-slopes.csv: record on line 2: wrong number of fields",
		"run\na\n":           "r-slopes.csv:1: there are fewer than 1 words and 1 numbers",
	} {
		require.NoError(t, os.WriteFile("r-slopes.csv", []byte(content), 0o600))
		_, err := Load("s.yaml")
		assert.EqualError(t, err, want)
	}
}
