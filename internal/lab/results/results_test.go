package results

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/stats"
)

// sample is two runs with two trials each, over two upstreams.
func sample() Set {
	s := New("day")
	s.Reference.Rows = []stats.Row{{Run: "published"}}
	for _, name := range []string{"a", "b"} {
		rows := []stats.Row{{Run: name, Priority: "low", Quantity: stats.Wait, Summary: stats.Summary{Mean: 1}}}
		s.Runs = append(s.Runs, Run{
			Name: name, Against: "a", Rows: rows, Apart: rows,
			Variance: stats.VarianceRow{Run: name, Upstreams: []float64{1, 2}},
			History: History{
				Stretch: 1, End: 9, Overloaded: [][]float64{{0}, {1}}, Level: [][]float64{{1}, {0.5}},
				Closeup: &Closeup{Step: 5, Upstreams: []int{1}, Level: [][]float64{{1, 0.5}}},
			},
			Trials: []Trial{{Seed: 1, Rows: rows, Counts: Counts{Jobs: 10}}, {Seed: 2, Rows: rows, Counts: Counts{Jobs: 20}}},
		})
	}
	return s
}

func TestReadsWhatWasWritten(t *testing.T) {
	s := sample()
	var file strings.Builder
	require.NoError(t, s.Write(&file))
	again, err := Read(strings.NewReader(file.String()), "r.json")
	require.NoError(t, err)
	assert.Equal(t, s.Runs, again.Runs)
	assert.Equal(t, 20.0, again.Run("b").trial(2).Counts.Jobs)
	assert.Nil(t, again.Run("c"))
	assert.Nil(t, again.Run("b").trial(3))
}

func TestMeanOfCounts(t *testing.T) {
	m := Mean([]Counts{{Jobs: 10, Queued: 1}, {Jobs: 20, Load: 0.5}})
	assert.Equal(t, Counts{Jobs: 15, Queued: 0.5, Load: 0.25}, m)
}

func TestReadRefuses(t *testing.T) {
	broken := func(change func(*Set)) string {
		s := sample()
		change(&s)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		return string(text)
	}
	for _, c := range []struct{ want, text string }{
		{"r.json: not the results of tracelab simulate: EOF", ""},
		{"r.json: not the results of tracelab simulate: invalid character 'x' looking for beginning of value", "x"},
		{`r.json: not the results of tracelab simulate: json: unknown field "x"`, `{"x":1}`},
		{"r.json: format: 0 is not known, only 1 is", `{}`},
		{"r.json: runs: there is none", `{"format":1}`},
		{"r.json: something follows the results", broken(func(*Set) {}) + "{}"},
		{"r.json: runs[1]: trials: there is none", broken(func(s *Set) { s.Runs[1].Trials = nil })},
		{"r.json: runs[0]: history.stretch_s: 0 must be positive", broken(func(s *Set) { s.Runs[0].History.Stretch = 0 })},
		{"r.json: runs[1]: history.level: 1 upstreams, but 2 in wait_variance", broken(func(s *Set) { s.Runs[1].History.Level = s.Runs[1].History.Level[1:] })},
		{"r.json: runs[0]: history.closeup: 1 rows of 0 upstreams every 5 s do not fit together", broken(func(s *Set) { s.Runs[0].History.Closeup.Upstreams = nil })},
		{"r.json: runs[1]: history.closeup: 1 rows of 1 upstreams every 0 s do not fit together", broken(func(s *Set) { s.Runs[1].History.Closeup.Step = 0 })},
	} {
		_, err := Read(strings.NewReader(c.text), "r.json")
		assert.EqualError(t, err, c.want)
	}
}

// Several sets are shown together; runs of one name stay apart.
func TestMerge(t *testing.T) {
	s := sample()
	all := Merge([]Set{s, s, s})
	assert.Equal(t, "day, day, day", all.Scenario)
	require.Len(t, all.Runs, 6)
	assert.Len(t, all.Reference.Rows, 3)
	names := map[string]bool{}
	for _, run := range all.Runs {
		assert.False(t, names[run.Name], run.Name)
		names[run.Name] = true
		assert.True(t, names[run.Against], "%s is against %s, which came before", run.Name, run.Against)
		assert.Equal(t, run.Name, run.Rows[0].Run)
		assert.Equal(t, run.Name, run.Apart[0].Run)
		assert.Equal(t, run.Name, run.Trials[0].Rows[0].Run)
		assert.Equal(t, run.Name, run.Variance.Run)
	}
	assert.Equal(t, "day: a (2)", all.Run("day: b (2)").Against)
	assert.Equal(t, "a", all.Run("a").Rows[0].Run, "renaming one leaves the others")
}
