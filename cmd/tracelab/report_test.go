package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallResults is the results of the small scenario, saved; it is played once.
var smallResults = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tracelab")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "small.json")
	if code, _, stderr := tracelab("simulate", small, "--json", path); code != 0 {
		return "", errors.New(stderr)
	}
	text, err := os.ReadFile(path)
	return string(text), err
})

// played is those results, the test's own.
func played(t *testing.T) (path string, r results) {
	t.Helper()
	text, err := smallResults()
	require.NoError(t, err)
	path = write(t, "small.json", text)
	r, err = readResults(path)
	require.NoError(t, err)
	return path, r
}

// The page holds every figure, and needs nothing from elsewhere.
func TestPageStandsAlone(t *testing.T) {
	_, r := played(t)
	var out bytes.Buffer
	require.NoError(t, r.writeHTML(&out))
	page := out.String()
	for id, figures := range map[string]int{
		"duration": 2, "wait": 2, "variance": 1, "availability": 5, "level": 4, "closeup": 4, "imbalance": 5,
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
	require.NoError(t, r.writeText(&text))
	assert.Contains(t, page, "wait variance")
}

// Names come from files: in the page they are text.
func TestPageEscapes(t *testing.T) {
	_, r := played(t)
	const evil = `<script>"&'</script>`
	r.Scenario = evil
	for i := range r.Runs {
		r.Runs[i].rename(map[string]string{r.Runs[i].Name: evil + r.Runs[i].Name})
	}
	var out bytes.Buffer
	require.NoError(t, r.writeHTML(&out))
	assert.NotContains(t, out.String(), "<script>")
	assert.Contains(t, out.String(), "&lt;script&gt;")
}

// The reference's rows stand below ours, with the ratio to them.
func TestReferenceBeside(t *testing.T) {
	_, r := played(t)
	tables := r.tables()
	find := func(name string) (mean float64) {
		for _, row := range tables.Rows {
			if row.Run == name && row.Quantity == "wait_s" && row.Priority == "low" {
				return row.Mean
			}
		}
		t.Fatalf("no row %q", name)
		return 0
	}
	assert.Equal(t, 7.13, find("baseline, reference"))
	assert.InDelta(t, find("baseline")/7.13, find("baseline / reference"), 1e-9)
	for _, row := range tables.Rows {
		assert.NotEqual(t, "one sidecar with hints, reference", row.Run)
	}
	assert.Len(t, tables.Variances, 5+4)
}

// Comparisons are ratios of paired trials.
func TestComparisons(t *testing.T) {
	_, r := played(t)
	for _, g := range r.comparisons() {
		for _, row := range g.rows {
			assert.Equal(t, map[string]string{
				"dynamic": "baseline", "dagor": "baseline", "expected": "dynamic", "one sidecar with hints": "baseline",
			}[row[0]], row[1])
		}
	}
	base, other := r.run("dynamic"), r.run("expected")
	fetches := measure{"fetches", func(t *trialResult) float64 { return t.Counts.Fetches }}
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

// Several files are shown together; runs of one name stay apart.
func TestReportsMerge(t *testing.T) {
	path, r := played(t)
	code, out, stderr := tracelab("report", path, path)
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "small, small\n")
	assert.Contains(t, out, "small: dynamic")
	all := merge([]results{r, r, r})
	require.Len(t, all.Runs, 15)
	names := map[string]bool{}
	for _, run := range all.Runs {
		assert.False(t, names[run.Name], run.Name)
		names[run.Name] = true
		assert.True(t, names[run.Against], "%s is against %s, which came before", run.Name, run.Against)
		assert.Equal(t, run.Name, run.Rows[0].Run)
	}
	assert.Equal(t, "small: dynamic (2)", all.run("small: expected (2)").Against)
	assert.Equal(t, "dynamic", all.run("dynamic").Rows[0].Run, "renaming one leaves the others")
}

func TestReportRefuses(t *testing.T) {
	_, r := played(t)
	broken := func(change func(*results)) string {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		var c results
		require.NoError(t, json.Unmarshal(text, &c))
		change(&c)
		text, err = json.Marshal(c)
		require.NoError(t, err)
		return string(text)
	}
	for _, c := range []struct{ want, text string }{
		{"r.json: not the results of tracelab simulate: EOF", ""},
		{"r.json: not the results of tracelab simulate: invalid character", "x"},
		{`r.json: not the results of tracelab simulate: json: unknown field "x"`, `{"x":1}`},
		{"r.json: format: 0 is not known, only 1 is", `{}`},
		{"r.json: runs: there is none", `{"format":1}`},
		{"r.json: something follows the results", broken(func(*results) {}) + "{}"},
		{"r.json: runs[2]: trials: there is none", broken(func(r *results) { r.Runs[2].Trials = nil })},
		{"r.json: runs[0]: history.stretch_s: 0 must be positive", broken(func(r *results) { r.Runs[0].History.Stretch = 0 })},
		{"r.json: runs[1]: history.level: 3 upstreams, but 4 in wait_variance", broken(func(r *results) { r.Runs[1].History.Level = r.Runs[1].History.Level[1:] })},
		{"r.json: runs[1]: history.closeup: 4 rows of 4 upstreams every 0 s do not fit together", broken(func(r *results) { r.Runs[1].History.Closeup.Step = 0 })},
	} {
		code, out, stderr := tracelab("report", write(t, "r.json", c.text))
		assert.Equal(t, 1, code, c.want)
		assert.Contains(t, stderr, c.want)
		assert.Empty(t, out)
	}
}

// FuzzResults: whatever is accepted can be shown.
func FuzzResults(f *testing.F) {
	f.Add(`{"format":1,"runs":[{"name":"a","trials":[{"seed":1}],"history":{"stretch_s":1},"rows":[{"run":"a","priority":"low","quantity":"wait_s","mean":1}]}]}`)
	f.Add(`{"format":1,"runs":[{"name":"a","trials":[{"seed":1},{"seed":3}],"wait_variance":{"upstreams":[1]},"history":{"stretch_s":1,"end_s":9,"overloaded":[[0,1]],"backlog_distance":[1]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decodeResults("r", strings.NewReader(text))
		if err != nil {
			return
		}
		require.NoError(t, r.writeText(io.Discard))
		require.NoError(t, r.writeHTML(io.Discard))
	})
}

// Every figure of the page is a file of its own as well, with a name that
// tells what it is.
func TestFiguresAsFiles(t *testing.T) {
	path, r := played(t)
	dir := t.TempDir()
	code, _, stderr := tracelab("report", path, "--figures", dir)
	require.Zero(t, code, stderr)
	want := 0
	for _, s := range r.sections() {
		want += len(s.Figures)
	}
	files, err := filepath.Glob(filepath.Join(dir, "small-*.svg"))
	require.NoError(t, err)
	assert.Len(t, files, want)
	text, err := os.ReadFile(filepath.Join(dir, "small-wait-low-jobs.svg"))
	require.NoError(t, err)
	for _, run := range r.Runs {
		assert.Contains(t, string(text), ">"+run.Name+"</text>")
	}
	code, _, stderr = tracelab("simulate", small, "--figures", path)
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "small.json is not a directory")
}
