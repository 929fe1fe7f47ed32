package page

import (
	"bytes"
	"context"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/figure"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/scenario"
)

// played is the results of the small scenario as a file; it is played once.
var played = sync.OnceValues(func() (string, error) {
	s, err := scenario.Load("../../../testdata/scenarios/small.yaml")
	if err != nil {
		return "", err
	}
	runs, err := s.Choose(scenario.Choice{Scale: 1})
	if err != nil {
		return "", err
	}
	set, err := scenario.NewLab(s, runs).Play(context.Background(), 2, func(*scenario.Trial) {})
	if err != nil {
		return "", err
	}
	if set.Reference, err = s.Reference.Read(); err != nil {
		return "", err
	}
	var file strings.Builder
	err = set.Write(&file)
	return file.String(), err
})

// small is those results, the test's own.
func small(t *testing.T) *results.Set {
	t.Helper()
	file, err := played()
	require.NoError(t, err)
	set, err := results.Read(strings.NewReader(file), "small.json")
	require.NoError(t, err)
	return &set
}

// The page holds every figure, and needs nothing from elsewhere.
func TestPageStandsAlone(t *testing.T) {
	r := small(t)
	var out bytes.Buffer
	require.NoError(t, writeHTML(&out, r))
	page := out.String()
	for id, figures := range map[string]int{
		"duration": 3, "wait": 3, "first-byte": 3, "slowdown": 3, "variance": 1, "availability": 5, "level": 4, "closeup": 4, "imbalance": 5,
	} {
		_, rest, ok := strings.Cut(page, `<section id="`+id+`">`)
		require.True(t, ok, id)
		section, _, _ := strings.Cut(rest, "</section>")
		assert.Equal(t, figures, strings.Count(section, "<svg "), id)
		assert.Equal(t, figures, strings.Count(section, "</svg>"), id)
	}
	assert.Empty(t, regexp.MustCompile(`(?i)https?:|//[a-z]|src=|href=|url\(|@import|<script|NaN|Inf`).FindAllString(page, -1))
	for _, run := range r.Runs {
		assert.Contains(t, page, run.Name)
	}
	var text bytes.Buffer
	require.NoError(t, Text(&text, r))
	assert.Contains(t, html.UnescapeString(page), text.String())
}

// Names come from files: in the page they are text.
func TestPageEscapes(t *testing.T) {
	r := small(t)
	const evil = `<script>"&'</script>`
	r.Scenario = evil
	for i := range r.Runs {
		r.Runs[i].Name = evil + r.Runs[i].Name
		for n := range r.Runs[i].Rows {
			r.Runs[i].Rows[n].Run = r.Runs[i].Name
		}
	}
	var out bytes.Buffer
	require.NoError(t, writeHTML(&out, r))
	assert.NotContains(t, out.String(), "<script>")
	assert.Contains(t, out.String(), "&lt;script&gt;")
}

// The reference's rows stand below ours, with the ratio to them.
func TestReferenceBeside(t *testing.T) {
	r := small(t)
	all := tables(r)
	find := func(name string) (mean float64) {
		for _, row := range all.Rows {
			if row.Run == name && row.Quantity == "wait_s" && row.Priority == "low" {
				return row.Mean
			}
		}
		t.Fatalf("no row %q", name)
		return 0
	}
	assert.Equal(t, 7.13, find("baseline, reference"))
	assert.InDelta(t, find("baseline")/7.13, find("baseline / reference"), 1e-9)
	for _, row := range all.Rows {
		assert.NotEqual(t, "one sidecar with hints, reference", row.Run)
	}
	assert.Len(t, all.Variances, 5+4)
}

// Comparisons are ratios of paired trials.
func TestComparisons(t *testing.T) {
	r := small(t)
	for _, g := range comparisons(r) {
		for _, row := range g.Rows {
			assert.Equal(t, map[string]string{
				"dynamic": "baseline", "dagor": "baseline", "expected": "dynamic", "one sidecar with hints": "baseline",
			}[row[0]], row[1])
		}
	}
	base, other := r.Run("dynamic"), r.Run("expected")
	fetches := measure{"fetches", func(t *results.Trial) float64 { return t.Counts.Fetches }}
	for i := range base.Trials {
		base.Trials[i].Counts.Fetches = 100 * float64(i+1)
		other.Trials[i].Counts.Fetches = 50 * float64(i+1)
	}
	assert.Equal(t, "0.500 [0.500, 0.500]", compare(base, other, fetches))
	other.Trials = other.Trials[1:]
	assert.Equal(t, "0.500", compare(base, other, fetches), "only the second seed has a pair")
	other.Trials[0].Seed = 99
	assert.Equal(t, "-", compare(base, other, fetches))
	base.Trials[0].Counts.Fetches = 0
	assert.Equal(t, "-", compare(base, base, fetches))
}

// A table of ratios without a ratio is left out.
func TestComparisonsWithoutARatio(t *testing.T) {
	trials := []results.Trial{{Seed: 1}}
	assert.Empty(t, comparisons(&results.Set{Runs: []results.Run{{Name: "a", Trials: trials}, {Name: "b", Against: "a", Trials: trials}}}))
}

func TestSeeds(t *testing.T) {
	for want, all := range map[string][]uint64{"seed 7": {7}, "seeds 3 to 5": {3, 4, 5}, "seeds 3, 5": {3, 5}} {
		var trials []results.Trial
		for _, seed := range all {
			trials = append(trials, results.Trial{Seed: seed})
		}
		assert.Equal(t, want, seeds(trials))
	}
}

// The column of jobs that were shed is there where one was.
func TestShedJobsHaveAColumn(t *testing.T) {
	r := small(t)
	assert.NotContains(t, counts(r).Heads[0], "shed")
	r.Runs[0].Counts.Unserved, r.Runs[0].Counts.Shed, r.Runs[0].Counts.Load = 5, 77, 0.5
	g := counts(r)
	got := map[string]string{}
	for i, head := range g.Heads[0] {
		got[head] = g.Rows[0][i]
	}
	assert.Equal(t, []string{"5", "77", "0.500"}, []string{got["unserved"], got["shed"], got["load"]})
}

// A level of 0 refuses everything, and one of 1 nothing.
func TestRefusalsAreRed(t *testing.T) {
	r := small(t)
	r.Runs = r.Runs[:2]
	r.Runs[0].History.Level, r.Runs[1].History.Level = [][]float64{{0, 0}}, [][]float64{{1, 1}}
	heat := figure.Heat()
	red := heat[len(heat)-1]
	strips := level(r).Figures
	require.Len(t, strips, 2)
	assert.Contains(t, strings.ToLower(string(strips[0].SVG)), red)
	assert.NotContains(t, strings.ToLower(string(strips[1].SVG)), red)
}

// Every figure of the page is a file of its own as well, with a name that
// tells what it is.
func TestFiguresAsFiles(t *testing.T) {
	r := small(t)
	dir := t.TempDir()
	require.NoError(t, Files(r, "", dir))
	want := 0
	for _, s := range sections(r) {
		want += len(s.Figures)
	}
	files, err := filepath.Glob(filepath.Join(dir, "small-*.svg"))
	require.NoError(t, err)
	assert.Len(t, files, want)
	text, err := os.ReadFile(filepath.Join(dir, "small-wait-low-jobs-figure-9.svg"))
	require.NoError(t, err)
	for _, run := range r.Runs {
		assert.Contains(t, string(text), ">"+run.Name+"</text>")
	}
	r.Runs[0].Name, r.Runs[1].Name = "a b", "a-b"
	assert.ErrorContains(t, Files(r, "", dir), "give the runs names that differ by more than signs")
}

// FuzzResults: whatever is accepted can be shown.
func FuzzResults(f *testing.F) {
	f.Add(`{"format":1,"runs":[{"name":"a","trials":[{"seed":1}],"history":{"stretch_s":1},"rows":[{"run":"a","priority":"low","quantity":"wait_s","mean":1}]}]}`)
	f.Add(`{"format":1,"runs":[{"name":"a","trials":[{"seed":1},{"seed":3}],"wait_variance":{"upstreams":[1]},"history":{"stretch_s":1,"end_s":9,"overloaded":[[0,1]],"backlog_distance":[1]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := results.Read(strings.NewReader(text), "r")
		if err != nil {
			return
		}
		require.NoError(t, Text(io.Discard, &r))
		require.NoError(t, writeHTML(io.Discard, &r))
	})
}
