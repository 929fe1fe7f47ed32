package results

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/stats"
)

// judged is a run with a trial for each mean low wait. The other waits are a
// tenth of it, and times ten seconds more.
func judged(name string, fetches float64, waits ...float64) Run {
	r := Run{Name: name, Counts: Counts{Jobs: 1000, Failed: fetches / 100, Expired: 1}}
	for i, w := range waits {
		row := func(q stats.Quantity, priority string, mean, p99 float64) stats.Row {
			return stats.Row{Quantity: q, Priority: priority, Summary: stats.Summary{Mean: mean, P99: p99}}
		}
		r.Trials = append(r.Trials, Trial{
			Seed: uint64(1001 + i), Counts: Counts{Fetches: fetches},
			Rows: []stats.Row{
				row(stats.Wait, "low", w, 10*w), row(stats.Wait, "high", w/10, w),
				row(stats.Duration, "low", w+10, 99), row(stats.Duration, "high", w+10, 99),
			},
		})
	}
	return r
}

func TestJudge(t *testing.T) {
	s := Set{Scenario: "day", Runs: []Run{
		judged("ours", 300, 1, 2, 3),
		judged("idle", 900, 4, 4, 4),
		judged("best", 200, 2, 4, 2),
	}}
	v := Judge(&s)
	assert.Equal(t, "day", v.Family)
	assert.Equal(t, "ours", v.Run)
	assert.Equal(t, 2, v.Rivals)
	assert.Equal(t, 3, v.Seeds)
	assert.InDelta(t, 4, v.Unanswered, 1e-9)
	assert.InDelta(t, 3, v.Fewest, 1e-9)
	require.Len(t, v.Marks, len(MarkNames()))
	by := map[string]Mark{}
	for i, m := range v.Marks {
		assert.Equal(t, MarkNames()[i], m.Name)
		assert.Equal(t, "best", m.Rival)
		by[m.Name] = m
	}
	assert.InDelta(t, 2, by["low wait"].Ours, 1e-9)
	assert.InDelta(t, 8.0/3, by["low wait"].Best, 1e-9)
	assert.InDelta(t, 6.0/8, by["low wait"].Ratio.Value, 1e-9)
	assert.InDelta(t, 0.5, by["low wait"].Ratio.Low, 1e-9)
	assert.InDelta(t, 1.5, by["low wait"].Ratio.High, 1e-9)
	assert.InDelta(t, 36.0/38, by["high time"].Ratio.Value, 1e-9)
	assert.InDelta(t, 1.5, by["fetches"].Ratio.Value, 1e-9)
}

// Each mark has a best rival of its own, but fetches have that of the low waits.
func TestBestRivalByMark(t *testing.T) {
	patient, quick := judged("patient", 10, 9), judged("quick", 500, 1)
	for i := range patient.Trials[0].Rows {
		if r := &patient.Trials[0].Rows[i]; r.Priority == "high" {
			r.Mean = 0.2 // less than the tenth of a second of quick's, after the limit
			r.P99 = 0.05
		}
	}
	v := Judge(&Set{Runs: []Run{judged("ours", 250, 2), quick, patient}})
	rivals := map[string]string{}
	for _, m := range v.Marks {
		rivals[m.Name] = m.Rival
	}
	assert.Equal(t, map[string]string{
		"low wait": "quick", "low p99": "quick", "high wait": "quick", "high p99": "patient",
		"low time": "quick", "high time": "patient", "fetches": "quick",
	}, rivals)
	assert.InDelta(t, 0.5, v.Marks[len(v.Marks)-1].Ratio.Value, 1e-9)
	assert.Equal(t, 2.0, v.Marks[0].Ratio.Value)
	assert.Zero(t, v.Marks[0].Ratio.High, "one seed has no interval")
}

// Waits that nobody notices are equal.
func TestShortWaitsAreEqual(t *testing.T) {
	v := Judge(&Set{Runs: []Run{judged("ours", 1, 0.008, 0.02), judged("best", 1, 0.0001, 0.01)}})
	assert.InDelta(t, 0.03/0.02, v.Marks[0].Ratio.Value, 1e-9)
	assert.InDelta(t, 0.014, v.Marks[0].Ours, 1e-9, "the figures are those that were measured")
	assert.InDelta(t, 1, v.Marks[2].Ratio.Value, 1e-9)
}

// A rival that sees every job is left out where the judged run is compared with
// its equals.
func TestJudgeBesideEquals(t *testing.T) {
	ours, spread, central := judged("ours", 100, 2, 2), judged("spread", 50, 4, 4), judged("central", 200, 1, 1)
	ours.Sidecars, spread.Sidecars, central.Sidecars = 40, 40, 1
	v := Judge(&Set{Runs: []Run{ours, spread, central}})
	require.Len(t, v.Equals, len(v.Marks))
	assert.Equal(t, "central", v.Marks[0].Rival)
	assert.InDelta(t, 2, v.Marks[0].Ratio.Value, 1e-9)
	assert.Equal(t, "spread", v.Equals[0].Rival)
	assert.InDelta(t, 0.5, v.Equals[0].Ratio.Value, 1e-9)
	assert.InDelta(t, 2, v.Equals[len(v.Equals)-1].Ratio.Value, 1e-9, "fetches beside those of the best equal")

	alone := Judge(&Set{Runs: []Run{ours, central}})
	assert.Empty(t, alone.Equals)
	j := Sum([]Verdict{v, alone})
	assert.InDelta(t, 0.5, j.Equals[0].Worst, 1e-9, "of the families that have equals")
	assert.InDelta(t, 2, j.Summary[0].Worst, 1e-9)
	assert.Empty(t, Sum([]Verdict{alone}).Equals)
}

// Seeds that only one of two runs has played are left out, and a run alone has
// nothing to be compared with.
func TestJudgePairsSeeds(t *testing.T) {
	v := Judge(&Set{Runs: []Run{judged("ours", 1, 1, 9), judged("best", 1, 2)}})
	assert.Equal(t, 0.5, v.Marks[0].Ratio.Value)
	v = Judge(&Set{Runs: []Run{judged("ours", 1, 1, 9)}})
	assert.Zero(t, v.Marks[0].Ratio.Value)
	assert.Empty(t, v.Marks[0].Rival)
}

func TestSum(t *testing.T) {
	var verdicts []Verdict
	for name, wait := range map[string]float64{"a": 1, "b": 4, "c": 4.6, "d": 2} {
		v := Judge(&Set{Scenario: name, Runs: []Run{judged("ours", 125, wait), judged("best", 100, 4)}})
		verdicts = append(verdicts, v)
	}
	j := Sum(verdicts)
	require.Len(t, j.Summary, len(MarkNames()))
	low := j.Summary[0]
	assert.Equal(t, "low wait", low.Mark)
	assert.InDelta(t, 0.75, low.Median, 1e-9)
	assert.InDelta(t, 1.15, low.Worst, 1e-9)
	assert.Equal(t, []string{"c"}, low.Above)
	fetches := j.Summary[len(j.Summary)-1]
	assert.Equal(t, 1.25, fetches.Worst)
	assert.Empty(t, fetches.Above, "fetches may be 1.3 times as many")
}
