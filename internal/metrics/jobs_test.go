package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestJobDone(t *testing.T) {
	for _, c := range []struct {
		outcome      intake.Outcome
		completeness intake.Completeness
		ttfb         time.Duration
		timed        bool
	}{
		{intake.Answered, intake.Complete, 2 * time.Second, true},
		{intake.Answered, intake.Complete, 0, true},
		{intake.Failed, intake.Complete, 2 * time.Second, true},
		{intake.Truncated, intake.Partial, 2 * time.Second, true},
		{intake.Deadline, intake.Partial, 2 * time.Second, true},
		{intake.Deadline, intake.Absent, 0, true},
		{intake.Gone, intake.Partial, 2 * time.Second, true},
		{intake.Gone, intake.Complete, 2 * time.Second, true}, // what is told counts, however odd
		{intake.Gone, intake.Absent, 0, true},
		{intake.NoAnswer, intake.Absent, 0, true},
		{intake.Shed, intake.Absent, 0, false},
		{intake.Rejected, intake.Absent, 0, false},
		{intake.TooLarge, intake.Absent, 0, false},
		{intake.Broken, intake.Absent, 0, false},
		{intake.Broken, intake.Partial, 2 * time.Second, false},
	} {
		for _, p := range []selection.Priority{selection.Low, selection.High} {
			m := newMetrics()
			want := map[string]float64{
				fmt.Sprintf("pilotfish_jobs_total{outcome=%q,priority=%q,read=\"no_project\"}", c.outcome, p): 1,
				fmt.Sprintf("pilotfish_answers_total{complete=%q}", c.completeness):                           1,
			}
			if c.timed {
				want[fmt.Sprintf("pilotfish_job_duration_seconds_count{priority=%q}", p)] = 1
				want[fmt.Sprintf("pilotfish_job_duration_seconds_sum{priority=%q}", p)] = 5
			}
			if c.timed && c.completeness != intake.Absent {
				want[fmt.Sprintf("pilotfish_job_ttfb_seconds_count{priority=%q}", p)] = 1
				if c.ttfb > 0 {
					want[fmt.Sprintf("pilotfish_job_ttfb_seconds_sum{priority=%q}", p)] = 2
				}
			}
			assert.Equal(t, want, changes(t, m, func() { m.JobDone(p, intake.NoProject, c.outcome, c.completeness, c.ttfb, 5*time.Second) }),
				"%v, %v after %v", c.outcome, c.completeness, c.ttfb)
		}
	}
}

func TestJobsAndAttemptsThatEndAlikeShareTheWord(t *testing.T) {
	for o, attempt := range map[intake.Outcome]pool.Outcome{
		intake.Answered:  pool.Answered,
		intake.Failed:    pool.Failed,
		intake.Truncated: pool.Truncated,
		intake.NoAnswer:  pool.NoAnswer,
		intake.Gone:      pool.Gone,
	} {
		assert.Equal(t, attempt.String(), o.String())
	}
}

func TestJobShed(t *testing.T) {
	m := newMetrics()
	got := changes(t, m, func() {
		m.JobShed(selection.High, intake.QueueFull)
		m.JobShed(selection.Low, intake.Displaced)
		m.JobShed(selection.Low, intake.Waited)
		m.JobShed(selection.Low, intake.Waited)
	})
	assert.Equal(t, map[string]float64{
		`pilotfish_shed_total{priority="high",reason="queue_full"}`: 1,
		`pilotfish_shed_total{priority="low",reason="displaced"}`:   1,
		`pilotfish_shed_total{priority="low",reason="waited"}`:      2,
	}, got)
}

func TestQueue(t *testing.T) {
	m := newMetrics()
	got := changes(t, m, func() {
		m.QueueEntered(selection.High)
		m.QueueEntered(selection.High)
		m.QueueEntered(selection.Low)
		m.QueueLeft(selection.High, 3*time.Second)
	})
	assert.Equal(t, map[string]float64{
		`pilotfish_queue_jobs{priority="high"}`:               1,
		`pilotfish_queue_jobs{priority="low"}`:                1,
		`pilotfish_queue_wait_seconds_count{priority="high"}`: 1,
		`pilotfish_queue_wait_seconds_sum{priority="high"}`:   3,
	}, got)
}

func TestJobStretched(t *testing.T) {
	m := newMetrics()
	assert.Equal(t, map[string]float64{
		`pilotfish_job_stretch_count{priority="high"}`:  2,
		`pilotfish_job_stretch_sum{priority="high"}`:    5,
		`pilotfish_job_slowdown_count{priority="high"}`: 2,
		`pilotfish_job_slowdown_sum{priority="high"}`:   0.75,
	}, changes(t, m, func() {
		m.JobStretched(selection.High, 1)
		m.JobStretched(selection.High, 4)
	}))
}
