package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// jobs counts and times whole jobs, by priority and outcome.
type jobs struct {
	ended         [selection.Priorities][intake.Readings][]prometheus.Counter // by intake.Outcome
	shed          [selection.Priorities][]prometheus.Counter                  // by intake.Shedding
	duration      []*histogram
	ttfb          []*histogram
	queued        []prometheus.Gauge
	waited        []*histogram
	answers       []prometheus.Counter // by intake.Completeness
	stretch       []*histogram
	slowdown      []*histogram
	in, out       prometheus.Counter
	notReplayable prometheus.Counter
}

func newJobs(r registrar) *jobs {
	duration := r.histograms("pilotfish_job_duration_seconds",
		"From a job's arrival to its end, of all jobs that were not refused.", jobSeconds, "priority")
	ttfb := r.histograms("pilotfish_job_ttfb_seconds",
		"From a job's arrival to the first byte of its response, where there was one.", jobSeconds, "priority")
	queued := r.gauges("pilotfish_queue_jobs",
		"Jobs that wait in the sidecar for an eligible upstream.", "priority")
	waited := r.histograms("pilotfish_queue_wait_seconds",
		"Time that a job spent in the queue, of those that had to wait, whatever became of them.", queueSeconds, "priority")
	answers := r.counters("pilotfish_answers_total",
		"Jobs by how much of a response the submitter got.", "complete")
	stretch := r.histograms("pilotfish_job_stretch",
		"A complete job's time over its time with no load, where the upstream tells the wait.", stretches, "priority")
	slowdown := r.histograms("pilotfish_job_slowdown",
		"The share of a complete job's time that it waited, where the upstream tells the wait.", slowdowns, "priority")
	j := &jobs{
		stretch:  byLabel[selection.Priority](selection.Priorities, stretch.with),
		slowdown: byLabel[selection.Priority](selection.Priorities, slowdown.with),
		duration: byLabel[selection.Priority](selection.Priorities, duration.with),
		ttfb:     byLabel[selection.Priority](selection.Priorities, ttfb.with),
		queued:   byLabel[selection.Priority](selection.Priorities, queued.WithLabelValues),
		waited:   byLabel[selection.Priority](selection.Priorities, waited.with),
		answers:  byLabel[intake.Completeness](intake.Completenesses, answers.WithLabelValues),
		in:       r.counter("pilotfish_request_body_bytes_total", "Bytes of the bodies of jobs that ended, where their size is known."),
		out:      r.counter("pilotfish_response_body_bytes_total", "Bytes of the bodies of responses that were passed on to submitters."),
		notReplayable: r.counter("pilotfish_replay_disabled_total",
			"Jobs that could be sent only once, because their body did not fit into what is kept for retries."),
	}
	ended := r.counters("pilotfish_jobs_total", "Jobs by how they ended, and by how much was read of what they say of themselves.", "priority", "read", "outcome")
	shed := r.counters("pilotfish_shed_total", "Jobs refused for load.", "priority", "reason")
	for p := range selection.Priority(selection.Priorities) {
		for read := range intake.Reading(intake.Readings) {
			j.ended[p][read] = byLabel[intake.Outcome](intake.Outcomes, ended.WithLabelValues, p.String(), read.String())
		}
		j.shed[p] = byLabel[intake.Shedding](intake.Sheddings, shed.WithLabelValues, p.String())
	}
	return j
}

// JobDone counts a job that ended. ttfb and total are the times from its
// arrival to the first byte of the response and to its end. The ttfb of a job
// without a response is not read.
func (j *jobs) JobDone(p selection.Priority, read intake.Reading, o intake.Outcome, c intake.Completeness, ttfb, total time.Duration) {
	j.ended[p][read][o].Inc()
	j.answers[c].Inc()
	if !o.Tried() {
		return
	}
	j.duration[p].Observe(total.Seconds())
	if c != intake.Absent {
		j.ttfb[p].Observe(ttfb.Seconds())
	}
}

// JobStretched counts how many times as long a complete job took as it would with no load.
func (j *jobs) JobStretched(p selection.Priority, times float64) {
	j.stretch[p].Observe(times)
	j.slowdown[p].Observe(1 - 1/times)
}

// JobShed counts a job refused for load; JobDone counts it too.
func (j *jobs) JobShed(p selection.Priority, why intake.Shedding) { j.shed[p][why].Inc() }

// QueueEntered counts a job that begins to wait; QueueLeft must follow.
func (j *jobs) QueueEntered(p selection.Priority) { j.queued[p].Inc() }

// QueueLeft counts a job that waits no longer, and how long it waited.
func (j *jobs) QueueLeft(p selection.Priority, waited time.Duration) {
	j.queued[p].Dec()
	j.waited[p].Observe(waited.Seconds())
}

// ReplayDisabled counts a job whose body could not be kept for retries.
func (j *jobs) ReplayDisabled() { j.notReplayable.Inc() }

// BytesPassed counts the body of a job and that of its response; a negative number
// is not known.
func (j *jobs) BytesPassed(in, out int64) {
	j.in.Add(float64(max(0, in)))
	j.out.Add(float64(max(0, out)))
}
