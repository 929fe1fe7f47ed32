package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/trace"
)

// burst is a capture of a job each second: served alike for a minute, then later and
// later, then one in part and some not at all.
func burst() (jobs []trace.Job) {
	for i := range 200 {
		first := 2.0
		if i > 60 {
			first += 0.5 * float64(i-60)
		}
		m := &trace.Measured{Outcome: "answered", TTFB: new(first), TTLB: new(first + 10), Attempts: []trace.Attempt{{End: first + 10}}}
		switch {
		case i == 150:
			m.Outcome, m.TTLB = "truncated", nil
		case i > 150 && i < 160:
			m.Outcome, m.TTFB, m.TTLB = "deadline", nil, nil
		}
		jobs = append(jobs, trace.Job{Offset: float64(i), Timeouts: trace.Timeouts{Queue: 30, Evaluate: 30}, Measured: m})
	}
	return jobs
}

func TestATrialOfACapture(t *testing.T) {
	trial, err := newTrial("burst.jsonl", burst())
	require.NoError(t, err)
	var modes []quality.Mode
	for _, c := range trial.changes {
		modes = append(modes, c.To)
	}
	assert.Equal(t, []quality.Mode{quality.Flat, quality.Growing, quality.Losing, quality.Growing}, modes)
	assert.Contains(t, trial.changes[1].Cause, "the first deadline passes in")

	assert.Equal(t, 60.0, trial.changes[1].Trend.Bound, "of the queue and of the evaluation")
	bands := trial.bands()
	require.Len(t, bands, 4)
	for i, band := range bands[1:] {
		assert.Equal(t, bands[i].To, band.From, "one mode follows the other")
	}
	assert.Equal(t, trial.end, bands[3].To)

	var text strings.Builder
	dir := t.TempDir()
	require.NoError(t, ShowTrial(&text, "burst.jsonl", burst(), filepath.Join(dir, "burst.html"), dir))
	assert.Contains(t, text.String(), "200 jobs over 4m41s: 190 complete, 1 partial, 9 absent")
	assert.Regexp(t, `(?m)^\S+ +losing +of the \d+ jobs of the last minute`, text.String())

	html, err := os.ReadFile(filepath.Join(dir, "burst.html"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(html), "<svg "))
	assert.Contains(t, string(html), "Timeline (figure 9)")
	assert.Contains(t, string(html), "Each job is shown.")
	for _, name := range []string{"burst-jsonl-timeline.svg", "burst-jsonl-kpi.svg"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
}

// Where there are too many jobs to draw, some are left out, and the page says so.
func TestALongTrialIsThinned(t *testing.T) {
	var jobs []trace.Job
	for i := range 4000 {
		jobs = append(jobs, trace.Job{Offset: float64(i), Measured: &trace.Measured{Outcome: "answered", TTFB: new(0.1), TTLB: new(0.2)}})
	}
	trial, err := newTrial("long", jobs)
	require.NoError(t, err)
	assert.Contains(t, trial.sections()[0].Text, "Of the 4,000 jobs, one of 3 is shown.")
}

func TestATrialNeedsOutcomes(t *testing.T) {
	_, err := newTrial("day.jsonl", []trace.Job{{Offset: 1}})
	require.ErrorContains(t, err, "day.jsonl: job 1 does not tell what became of it")
	_, err = newTrial("day.jsonl", nil)
	require.EqualError(t, err, "day.jsonl: there is no job")
}
