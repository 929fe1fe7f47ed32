package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestEndedJobs(t *testing.T) {
	for i, c := range []struct {
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
		{intake.Gone, intake.Complete, 2 * time.Second, true}, // the record counts, even if it is unusual
		{intake.Gone, intake.Absent, 0, true},
		{intake.NoAnswer, intake.Absent, 0, true},
		{intake.Shed, intake.Absent, 0, false}, // each has a different reason
		{intake.Shed, intake.Absent, 0, false},
		{intake.Shed, intake.Absent, 0, false},
		{intake.Rejected, intake.Absent, 0, false},
		{intake.TooLarge, intake.Absent, 0, false},
		{intake.Broken, intake.Absent, 0, false},
		{intake.Broken, intake.Partial, 2 * time.Second, false},
	} {
		for _, p := range []selection.Priority{selection.Low, selection.High} {
			m := newMetrics()
			want := map[string]float64{
				fmt.Sprintf("pilotfish_jobs_total{outcome=%q,priority=%q}", c.outcome, p): 1,
			}
			why := intake.Shedding(i % intake.Sheddings)
			if c.outcome == intake.Shed {
				want[fmt.Sprintf("pilotfish_shed_total{priority=%q,reason=%q}", p, why)] = 1
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
			assert.Equal(t, want, changes(t, m, func() {
				m.Ended(&record.Job{
					Facts: intake.Facts{Priority: p}, Outcome: c.outcome, Shedding: why, Completeness: c.completeness,
					TTFB: c.ttfb, Total: 5 * time.Second,
				})
			}),
				"%v, %v after %v", c.outcome, c.completeness, c.ttfb)
		}
	}
}

func TestOutcomesOfJobsAndAttemptsAgree(t *testing.T) {
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

// A prefetch is counted neither as a job nor as a pick. The job that finds its data counts as a
// use of the prefetch.
func TestPrefetches(t *testing.T) {
	m := newMetrics()
	assert.Equal(t, map[string]float64{`pilotfish_prefetches_total{outcome="answered"}`: 1}, changes(t, m, func() {
		m.Ended(&record.Job{Facts: intake.Facts{Prefetch: true}, Total: time.Second, Body: 9, Attempts: []record.Attempt{{Upstream: "u:1"}}})
	}))
	used := changes(t, m, func() {
		m.Ended(&record.Job{Attempts: []record.Attempt{{Why: pool.Why{Prefetched: true}}}})
	})
	assert.InDelta(t, 1, used["pilotfish_prefetches_used_total"], 0)
	picks := changes(t, m, func() {
		m.Ended(&record.Job{Attempts: []record.Attempt{{Why: pool.Why{Heavy: true, Dedicated: true}}, {Why: pool.Why{Heavy: true}}, {}}})
	})
	assert.InDelta(t, 1, picks[`pilotfish_heavy_picks_total{upstream_kind="dedicated"}`], 0)
	assert.InDelta(t, 1, picks[`pilotfish_heavy_picks_total{upstream_kind="ordinary"}`], 0)
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

// Unknown values of a job are not counted, nor is the body of a refused job.
func TestWhatIsKnownOfAJob(t *testing.T) {
	ended := func(r record.Job) map[string]float64 {
		m := newMetrics()
		got := changes(t, m, func() {
			r.Total = 5 * time.Second
			m.Ended(&r)
		})
		for name := range got {
			if strings.HasPrefix(name, "pilotfish_job") && !strings.HasPrefix(name, "pilotfish_job_stretch") && !strings.HasPrefix(name, "pilotfish_job_wait") && !strings.HasPrefix(name, "pilotfish_jobs_read") {
				delete(got, name)
			}
		}
		return got
	}
	hinted := record.Attempt{Upstream: "u:1", Hint: &pool.Hint{Waited: 4 * time.Second}}
	assert.Equal(t, map[string]float64{
		`pilotfish_job_wait_seconds_count{priority="low"}`: 1, `pilotfish_job_wait_seconds_sum{priority="low"}`: 4, `pilotfish_job_stretch_count{priority="low"}`: 1, `pilotfish_job_stretch_sum{priority="low"}`: 5,
		`pilotfish_jobs_read_total{read="full"}`: 1, `pilotfish_picks_total{cache="none"}`: 1, "pilotfish_replay_disabled_total": 1, "pilotfish_retries_refused_total": 1,
		"pilotfish_request_body_bytes_total": 10, "pilotfish_response_body_bytes_total": 100,
	}, ended(record.Job{
		Completeness: intake.Complete, Attempts: []record.Attempt{hinted}, Read: intake.Full, Unkept: true, RetryRefused: true, Body: 10, Bytes: 100,
	}))
	assert.Equal(t, map[string]float64{`pilotfish_jobs_read_total{read="unread"}`: 1}, ended(record.Job{Body: -1}))
	assert.Equal(t, map[string]float64{"pilotfish_request_body_bytes_total": 10}, ended(record.Job{Body: 10, Outcome: intake.Rejected}))
}
