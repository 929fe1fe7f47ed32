package scenario

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection/rivals"
)

const judging = "../../../testdata/scenarios/judging"

// firstJudged is the smallest seed on which nothing is tuned.
const firstJudged = 1001

// The families' seeds are theirs alone: nothing was tuned on them.
func TestFamiliesAreApartFromTuning(t *testing.T) {
	families, err := LoadFamilies(judging, nil)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(families), 20)
	taken := map[uint64]string{}
	for _, s := range families {
		assert.GreaterOrEqual(t, s.Seeds, 3, s.Name)
		assert.Greater(t, s.jobs.workload.Duration, s.WarmUp.Seconds(), s.Name)
		for seed := s.Seed; seed < s.Seed+uint64(s.Seeds); seed++ {
			assert.GreaterOrEqual(t, seed, uint64(firstJudged), s.Name)
			assert.Empty(t, taken[seed], "%s has a seed of another family", s.Name)
			taken[seed] = s.Name
		}
	}
	for _, path := range scenarios(t) {
		s, err := Load(path)
		require.NoError(t, err)
		for seed := s.Seed; seed < s.Seed+uint64(s.Seeds); seed++ {
			assert.Equal(t, filepath.Base(path) == "money.yaml", seed >= firstJudged, "%s", path)
			assert.Empty(t, taken[seed], "%s has a seed of a family", path)
		}
	}
}

// Every policy and every detector stands beside the one that is judged, which
// comes first.
func TestRivalsAreAll(t *testing.T) {
	s, err := Load(filepath.Join(judging, rivalsFile))
	require.NoError(t, err)
	assert.Equal(t, "expected", s.Runs[0].Policy)
	var policies, detectors []string
	for i := range s.Runs {
		policies = append(policies, s.Runs[i].Policy)
		detectors = append(detectors, s.Runs[i].Overload)
	}
	assert.Subset(t, policies, rivals.All())
	assert.Subset(t, detectors, overload.Names())
}

// folder writes files into a folder of the test's own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const (
	tinyRivals = "runs:\n  - {name: judged, policy: expected}\n  - {name: other, policy: random, sidecars: {count: 1}}\n"
	tinyFamily = "seed: 2001\nseeds: 2\nwarm_up: 100s\nworkload: {jobs: 600, duration: 600}\nfleet: {upstreams: 2, cores: 4}\nsidecars: {count: 3}\n"
)

func TestLoadFamilies(t *testing.T) {
	dir := folder(t, map[string]string{"rivals.yaml": tinyRivals, "a.yaml": tinyFamily, "b.yaml": tinyFamily, "README.md": "x"})
	families, err := LoadFamilies(dir, nil)
	require.NoError(t, err)
	require.Len(t, families, 2)
	assert.Equal(t, "a", families[0].Name)
	require.Len(t, families[0].Runs, 2)
	assert.Equal(t, "judged", families[0].Base)
	assert.Equal(t, 3, families[0].Runs[0].Sidecars.Count, "the family's")
	assert.Equal(t, 1, families[0].Runs[1].Sidecars.Count, "the run's own goes over it")
	assert.Equal(t, 2, families[0].Runs[1].Fleet.Upstreams)
	families, err = LoadFamilies(dir, []string{"b"})
	require.NoError(t, err)
	require.Len(t, families, 1)
	assert.Equal(t, "b", families[0].Name)
}

func TestLoadFamiliesRefuses(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"rivals.yaml: no such file or directory":                                                  {"a.yaml": tinyFamily},
		`rivals.yaml:1:31: runs[0].policy: "x" is not one of expected`:                            {"a.yaml": tinyFamily, "rivals.yaml": "runs: [{name: judged, policy: x}]"},
		"there is no family, a *.yaml file beside rivals.yaml":                                    {"rivals.yaml": tinyRivals},
		`a.yaml:7:7: runs: a family has none of its own: those of rivals.yaml are played`:         {"a.yaml": tinyFamily + "runs: [{name: a, policy: random}]", "rivals.yaml": tinyRivals},
		"a.yaml:5:20: fleet.upstreams: 0 is not between 1 and 10000":                              {"a.yaml": strings.Replace(tinyFamily, "upstreams: 2", "upstreams: 0", 1), "rivals.yaml": tinyRivals},
		"a.yaml:1:1: the file is not a list of keys and values: expected a section with the keys": {"a.yaml": "7", "rivals.yaml": tinyRivals},
	} {
		_, err := LoadFamilies(folder(t, files), nil)
		assert.ErrorContains(t, err, want)
	}
	_, err := LoadFamilies(folder(t, map[string]string{"a.yaml": tinyFamily, "rivals.yaml": tinyRivals}), []string{"c"})
	assert.EqualError(t, err, `--family "c": the families are a`)
}

func plan(t *testing.T) *Families {
	t.Helper()
	dir := folder(t, map[string]string{"rivals.yaml": tinyRivals, "a.yaml": tinyFamily, "b.yaml": tinyFamily})
	all, err := LoadFamilies(dir, nil)
	require.NoError(t, err)
	f, err := NewFamilies(all, Choice{Scale: 0.5})
	require.NoError(t, err)
	return f
}

// Every family is played, one after the other, and what happened in the warm-up
// does not count.
func TestPlayFamilies(t *testing.T) {
	f := plan(t)
	assert.Zero(t, f.Done())
	var names []string
	verdicts, err := f.Play(t.Context(), 2, func(v results.Verdict) { names = append(names, v.Family) })
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names)
	assert.Equal(t, 1.0, f.Done())
	require.Len(t, verdicts, 2)
	for _, v := range verdicts {
		assert.Equal(t, "judged", v.Run)
		assert.Equal(t, 2, v.Seeds)
		fetches := v.Marks[slices.Index(results.MarkNames(), "fetches")]
		assert.Positive(t, fetches.Ours)
		assert.Positive(t, fetches.Ratio.Value)
	}
}

// What was done before an interruption is shown, and it says so.
func TestFamiliesInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	verdicts, err := plan(t).Play(ctx, 1, func(results.Verdict) { cancel() })
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.EqualError(t, err, "interrupted: these are the 1 of 2 families that were done")
	assert.Len(t, verdicts, 1)
}
