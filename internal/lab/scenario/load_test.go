package scenario

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

func scenarios(t testing.TB) []string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "testdata", "scenarios")
	var all []string
	for _, dir := range []string{root, filepath.Join(root, "tuning")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		all = append(all, files...)
	}
	return all
}

// Every scenario that is shipped loads, and everything it names is there.
func TestShippedScenariosLoad(t *testing.T) {
	for _, path := range scenarios(t) {
		s, err := Load(path)
		require.NoError(t, err, path)
		_, err = s.Reference.Read()
		require.NoError(t, err, path)
		for i := range s.Runs {
			_, err := s.Runs[i].setup(1)
			require.NoError(t, err, path)
		}
	}
}

// The thesis's scenarios are the thesis's: what calibration rests on.
func TestThesisScenarios(t *testing.T) {
	for file, rows := range map[string]int{"thesis.yaml": 6, "production.yaml": 1} {
		s, err := Load(filepath.Join("..", "..", "..", "testdata", "scenarios", file))
		require.NoError(t, err)
		published, err := s.Reference.Read()
		require.NoError(t, err)
		found := 0
		for i := range s.Runs {
			r := &s.Runs[i]
			if slices.ContainsFunc(published.Variances, func(v stats.VarianceRow) bool { return v.Run == r.Reference }) {
				found++
			}
			assert.Equal(t, 2_879_676, r.jobs.workload.Jobs)
			assert.Equal(t, 86400.0, r.jobs.workload.Duration)
			assert.Equal(t, file == "thesis.yaml", r.jobs.workload.Static)
			assert.Equal(t, 14, r.Fleet.Upstreams)
			assert.Equal(t, 1, r.Sidecars.Count)
			assert.Equal(t, 5*time.Second, r.Sidecars.Interval)
		}
		assert.Equal(t, rows, found, "runs beside rows of the reference in %s", file)
	}
}

func parseText(text string) (*Scenario, error) {
	return parse(cli.NewDocument("s.yaml", []byte(text)), "s.yaml")
}

func TestDefaults(t *testing.T) {
	s, err := parseText("runs: [{name: a, policy: random}]")
	require.NoError(t, err)
	assert.Equal(t, "s", s.Name)
	assert.Equal(t, uint64(1), s.Seed)
	assert.Equal(t, 1, s.Seeds)
	assert.Equal(t, 10*time.Second, s.Sample)
	assert.Equal(t, "a", s.Base)
	r := &s.Runs[0]
	assert.Equal(t, sim.Fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30, Parallel: 1, Discovery: 2 * time.Second}, r.Fleet)
	assert.Equal(t, 2_879_676, r.jobs.workload.Jobs)
	assert.Equal(t, "none", r.Overload)
	assert.Equal(t, 100.0, r.Stalled)
	c, err := r.setup(7)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), c.Seed)
	assert.Equal(t, 1, c.Sidecars.Count)
	assert.Equal(t, 5*time.Second, c.Sidecars.Interval)
	assert.Equal(t, sim.Patience(time.Second), c.Sidecars.ConnectTimeout)
	assert.Equal(t, 3, c.Sidecars.Attempts)
	assert.Equal(t, 240*time.Second, c.Sidecars.Wait)
	assert.False(t, c.Sidecars.Hints)
	assert.Nil(t, c.Fleet.Preemption)
}

// What a run says goes over what the scenario says; the rest stays.
func TestRunsOverride(t *testing.T) {
	s, err := parseText(`
workload: {jobs: 1000, duration: 600, pattern: steady}
fleet: {upstreams: 8, cache: 2GiB, preemption: {life: 1h}}
sidecars: {count: 40, hints: true, connect_timeout: never}
base: b
runs:
  - {name: a, policy: expected, expected: {wait_price: 2, off: [` + selection.Parts()[0].String() + `]}, sidecars: {interval: 20s, hints: false, connect_timeout: 2s}}
  - {name: b, policy: dynamic, overload: dagor, stalled: 50, dagor: {ignore_wait: true}, fleet: {upstreams: 10}}
  - {name: c, policy: bounded-hash, bound: 2, against: a, workload: {jobs: 500}}
`)
	require.NoError(t, err)
	a, b, c := &s.Runs[0], &s.Runs[1], &s.Runs[2]
	x, err := a.setup(1)
	require.NoError(t, err)
	assert.Equal(t, 40, x.Sidecars.Count)
	assert.Equal(t, 20*time.Second, x.Sidecars.Interval)
	assert.Equal(t, sim.Patience(2*time.Second), x.Sidecars.ConnectTimeout)
	assert.False(t, x.Sidecars.Hints)
	assert.Equal(t, settings.Size(2<<30), x.Fleet.Cache)
	assert.Equal(t, 8, x.Fleet.Upstreams)
	assert.Equal(t, 8, x.Fleet.Preemption.Upstreams)
	assert.Equal(t, time.Hour, x.Fleet.Preemption.Life)
	want, err := selection.NewExpected(selection.ExpectedConfig{Off: selection.Parts()[0], WaitPrice: 2})
	require.NoError(t, err)
	assert.Equal(t, want, x.Policy)

	y, err := b.setup(1)
	require.NoError(t, err)
	assert.Equal(t, 10, y.Fleet.Upstreams)
	assert.Equal(t, 8, y.Fleet.Preemption.Upstreams)
	detector, err := overload.NewDagor(overload.DagorConfig{Limit: 50, IgnoreWait: true})
	require.NoError(t, err)
	assert.Equal(t, detector(), y.Detector())

	z, err := c.setup(1)
	require.NoError(t, err)
	assert.Equal(t, selection.BoundedHash{Factor: 2}, z.Policy)
	assert.Equal(t, "b", a.Against)
	assert.Equal(t, "a", c.Against)
	assert.Equal(t, 1000, b.jobs.workload.Jobs)
	assert.Equal(t, 500, c.jobs.workload.Jobs)
	assert.Equal(t, 600.0, c.jobs.workload.Duration)
	assert.Equal(t, workload.Pattern("steady"), c.jobs.workload.Pattern)
}

func TestScenarioFaults(t *testing.T) {
	const run = "runs: [{name: a, policy: random}]\n"
	for text, want := range map[string]string{
		"":                    "s.yaml:1:1: runs: there is no run",
		"runs: []":            "s.yaml:1:7: runs: there is no run",
		"runs: [":             "s.yaml:2:1: not YAML: while parsing a flow node: did not find expected node content",
		run + "run: 1":        "s.yaml:2:1: run: unknown key; did you mean runs?",
		run + "seeds: -1":     "s.yaml:2:8: seeds: -1 is not between 1 and 1000",
		run + "seeds: x":      `s.yaml:2:8: seeds: "x" is not a whole number`,
		run + "sample: -1s":   "s.yaml:2:9: sample: -1s must be positive",
		run + "end: -1h":      "s.yaml:2:6: end: -1h0m0s must not be negative",
		run + "base: b":       `s.yaml:2:7: base: there is no run "b"`,
		run + "---\n" + run:   "s.yaml:2:1: the file holds more than one document",
		"runs: [{policy: x}]": "s.yaml:1:8: runs[0].name: a name is required\ns.yaml:1:17: runs[0].policy: \"x\" is not one of " + strings.Join(policies(), ", "),
		"runs: [{name: a}]":   "s.yaml:1:8: runs[0].policy: \"\" is not one of " + strings.Join(policies(), ", "),
		"runs: [{name: a, policy: random, x: 1}]": "s.yaml:1:34: runs[0].x: unknown key; those known here are name, overload, stalled, dagor, policy, expected, bound, workload, fleet, sidecars, submitters, against, reference",

		"runs: [{name: a, policy: random}, {name: a, policy: random}]":             `s.yaml:1:42: runs[1].name: "a" is there twice`,
		"runs: [{name: a, policy: random, overload: x}]":                           `s.yaml:1:44: runs[0].overload: "x" is not one of none, threshold, dagor, adaptive`,
		"runs: [{name: a, policy: random, stalled: -5}]":                           "s.yaml:1:43: runs[0].stalled: -5 must be positive",
		"runs: [{name: a, policy: random, against: b}]":                            `s.yaml:1:43: runs[0].against: there is no run "b"`,
		"runs: [{name: a, policy: random, dagor: {ignore_wait: true}}]":            "s.yaml:1:41: runs[0].dagor: is for the overload policy dagor, not for none",
		"runs: [{name: a, policy: random, expected: {off: [" + parts()[0] + "]}}]": "s.yaml:1:44: runs[0].expected: is for the policy expected, not for random",
		"runs: [{name: a, policy: expected, expected: {off: [magic]}}]":            "s.yaml:1:53: runs[0].expected.off[0]: \"magic\" is not one of " + strings.Join(parts(), ", "),
		"runs: [{name: a, policy: random, fleet: {cores: -1}}]":                    "s.yaml:1:49: runs[0].fleet.cores: -1 is not between 1 and 65536",
		"runs: [{name: a, policy: random, sidecars: {attempts: 101}}]":             "s.yaml:1:55: runs[0].sidecars.attempts: 101 is not between 1 and 100",
		"runs: [{name: a, policy: random, workload: {jobs: -1}}]":                  "s.yaml:1:51: runs[0].workload.jobs: -1 is less than 1",
		run + "workload: {jobs: -1}":                                               "s.yaml:2:18: workload.jobs: -1 is less than 1",
		run + "workload: {seed: 3}":                                                "s.yaml:2:18: workload.seed: the scenario's seed is that of its workload too",
		run + "workload: {population: {work: -1}}":                                 "s.yaml:2:31: workload.population.work: -1 is not between 0 and 1e+12",
		run + "workload: {jobs: 5}\ntrace: t.jsonl":                                "s.yaml:3:8: trace: either a trace or a workload says what the jobs are, not both",
		run + "fleet: {preemption: {upstreams: 5}, upstreams: 4}":                  "s.yaml:2:33: fleet.preemption.upstreams: 5 is not between 1 and 4",
		run + "fleet: {upstreams: 10001}":                                          "s.yaml:2:20: fleet.upstreams: 10001 is not between 1 and 10000",
		run + "fleet: {cache: much}":                                               `s.yaml:2:16: fleet.cache: "much" is not a size such as 65536, 512KiB, 64MiB or 1GiB`,
		run + "fleet: {backlog: -1}":                                               "s.yaml:2:18: fleet.backlog: -1 is not between 0 and 1073741824",
		run + "fleet: {preemption: {upstreams: 15}}":                               "s.yaml:2:33: fleet.preemption.upstreams: 15 is not between 1 and 14",
		run + "fleet: {preemption: {early: 1.5}}":                                  "s.yaml:2:29: fleet.preemption.early: 1.5 is not a share from 0 to 1",
		run + "fleet: {preemption: {life: 10s}}":                                   "s.yaml:2:28: fleet.preemption.life: 10s is not longer than the notice, 30s",
		run + "fleet: {preemption: {away_min: 5m, away_max: 1m}}":                  "s.yaml:2:46: fleet.preemption.away_max: 1m0s is less than away_min, 5m0s",
		"runs: [{name: a, policy: random, bound: 2}]":                              "s.yaml:1:41: runs[0].bound: is for the policy bounded-hash, not for random",
		"runs: [{name: a, policy: bounded-hash, bound: 0.5}]":                      "s.yaml:1:47: runs[0].bound: 0.5 is not between 1 and 1000",
		"runs: [{name: a, policy: random, expected: {band: 1}}]":                   "s.yaml:1:44: runs[0].expected: is for the policy expected, not for random",
		"apart: true\nruns: [{name: a, policy: expected}]":                         "s.yaml:1:8: apart: is for a workload with crowds",
		"runs: [{name: a, policy: expected, expected: {spare: 2}}]":                "s.yaml:1:46: runs[0].expected: expected: Spare is 2: want a share of the cores below 1",
		run + "fleet: {discovery: 0s}":                                             "s.yaml:2:20: fleet.discovery: 0s must be positive",
		run + "fleet: {parallel: 0}":                                               "s.yaml:2:19: fleet.parallel: 0 is not between 1 and 65536",
		run + "fleet: {contention: -1}":                                            "s.yaml:2:21: fleet.contention: -1 is not between 0 and 100",
		run + "fleet: {unlike: [{first: 14}]}":                                     "s.yaml:2:26: fleet.unlike[0].first: 14 is not between 0 and 13",
		run + "fleet: {unlike: [{speed: 0}]}":                                      "s.yaml:2:26: fleet.unlike[0].speed: 0 is not between 0.001 and 1000",
		run + "fleet: {faults: [{kind: hung}, {kind: ill}]}":                       `s.yaml:2:39: fleet.faults[1].kind: "ill" is not one of hung, refusing, slow, failing, empty, silent, loadless, listless, coreless, many-cores, idle, greedy, nan, resets`,
		run + "fleet: {faults: [{kind: hung, first: 10, upstreams: 5}]}":           "s.yaml:2:53: fleet.faults[0].upstreams: 5 is not between 1 and 4",
		run + "fleet: {faults: [{kind: hung, for: -1s}]}":                          "s.yaml:2:36: fleet.faults[0].for: -1s must not be negative",
		run + "fleet: {faults: [~]}":                                               "s.yaml:2:18: fleet.faults[0]: nothing is said of this fault",
		run + "fleet: {unlike: [~]}":                                               "s.yaml:2:18: fleet.unlike[0]: nothing is said of these upstreams",
		run + "fleet: {growth: {upstreams: 14, at: 1m}}":                           "s.yaml:2:29: fleet.growth.upstreams: 14 is not between 1 and 13",
		run + "fleet: {growth: {upstreams: 3}}":                                    "s.yaml:2:17: fleet.growth.at: 0s must be positive",
		run + "fleet: {restart: {at: 1m, away: 0s}}":                               "s.yaml:2:33: fleet.restart.away: 0s must be positive",
		run + "fleet: {restart: {at: 1m}, preemption: {}}":                         "s.yaml:2:18: fleet.restart: either upstreams are pre-empted or they restart, not both",
		run + "submitters: {patience: 3s, again: -1}":                              "s.yaml:2:35: submitters.again: -1 is not between 0 and 1000",
		run + "submitters: {again: 2}":                                             "s.yaml:2:21: submitters.again: 2 times, but patience is without an end",
		run + "warm_up: -1s":                                                       "s.yaml:2:10: warm_up: -1s must not be negative",
		run + "sidecars: {lag: -1s}":                                               "s.yaml:2:17: sidecars.lag: -1s must not be negative",
		run + "workload: {crowds: [{jobs: 0}]}":                                    "s.yaml:2:28: workload.crowds[0].jobs: 0 is not between 1 and 1000000000",
		"runs: [{name: a, policy: random, submitters: {patience: -1s}}]":           "s.yaml:1:57: runs[0].submitters.patience: -1s must not be negative",
		run + "sidecars: {count: -1}":                                              "s.yaml:2:19: sidecars.count: -1 is not between 1 and 100000",
		run + "sidecars: {interval: -5s}":                                          "s.yaml:2:22: sidecars.interval: -5s must be positive",
		run + "sidecars: {wait: -5s}":                                              "s.yaml:2:18: sidecars.wait: -5s must be positive",
		run + "sidecars: {connect_timeout: -1}":                                    `s.yaml:2:29: sidecars.connect_timeout: "-1" is neither a time above 0, such as 1s, nor never`,
		run + "sidecars: {connect_timeout: soon}":                                  `s.yaml:2:29: sidecars.connect_timeout: "soon" is neither a time above 0, such as 1s, nor never`,
		run + "sidecars: {freeze: {at: -1s, for: -2s}}":                            "s.yaml:2:25: sidecars.freeze.at: -1s must not be negative\ns.yaml:2:35: sidecars.freeze.for: -2s must not be negative",
	} {
		_, err := parseText(text)
		assert.EqualError(t, err, want, text)
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// docs/scenarios.md names every key.
func TestEveryKeyIsDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scenarios.md"))
	require.NoError(t, err)
	described := map[string]bool{}
	for _, word := range regexp.MustCompile("`[a-z_]+`").FindAllString(string(text), -1) {
		described[strings.Trim(word, "`")] = true
	}
	seen := 0
	var walk func(reflect.Type)
	walk = func(v reflect.Type) {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			tag, ok := v.Field(i).Tag.Lookup("yaml")
			if !ok {
				continue
			}
			if key := strings.TrimSuffix(tag, ",inline"); key != "" {
				seen++
				assert.True(t, described[key], "docs/scenarios.md does not name %s of %v", key, v)
			}
			walk(v.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[Scenario]())
	assert.Greater(t, seen, 100)
}

func FuzzScenario(f *testing.F) {
	for _, path := range scenarios(f) {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseText(text)
		if err != nil {
			return
		}
		for i := range s.Runs {
			if _, err := s.Runs[i].setup(1); err != nil {
				t.Fatalf("accepted, but then: %v", err)
			}
		}
	})
}
