package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// jobs counts and times whole jobs, by priority and outcome.
type jobs struct {
	outcomes      [selection.Priorities][]prometheus.Counter // by intake.Outcome
	shed          [selection.Priorities][]prometheus.Counter // by intake.Shedding
	read          []prometheus.Counter                       // by intake.Reading
	duration      []prometheus.Observer
	ttfb          []prometheus.Observer
	queued        []prometheus.Gauge
	waited        []prometheus.Observer
	wait          []prometheus.Observer
	stretch       []prometheus.Observer
	in, out       prometheus.Counter
	prefetches    []prometheus.Counter // by intake.Outcome
	notReplayable prometheus.Counter
}

func newJobs(r registrar) *jobs {
	byPriority := func(name, help string, bounds []float64) []prometheus.Observer {
		return byLabel[selection.Priority](selection.Priorities, r.histograms(name, help, bounds, "priority").WithLabelValues)
	}
	queued := r.NewGaugeVec(prometheus.GaugeOpts{
		Name: "pilotfish_queue_jobs", Help: "Jobs that wait in the sidecar for an eligible upstream.",
	}, []string{"priority"})
	read := r.counters("pilotfish_jobs_read_total", "Jobs with a body by whether their project and priority could be read.", "read")
	j := &jobs{
		duration: byPriority("pilotfish_job_duration_seconds",
			"Time from a job's arrival to its end, of all jobs that were not refused.", jobSeconds),
		ttfb: byPriority("pilotfish_job_ttfb_seconds",
			"Time from a job's arrival to the first byte of its response, of jobs with a response.", jobSeconds),
		waited: byPriority("pilotfish_queue_wait_seconds",
			"Time in the sidecar's queue, of all jobs that were queued, whatever their outcome.", queueSeconds),
		wait: byPriority("pilotfish_job_wait_seconds",
			"Time from a job's arrival to the start of its execution, of jobs whose upstream reports its own queue time.", jobSeconds),
		stretch: byPriority("pilotfish_job_stretch",
			"Duration of a completed job divided by its duration without queueing, of jobs whose upstream reports its queue time.", stretches),
		queued: byLabel[selection.Priority](selection.Priorities, queued.WithLabelValues),
		read:   byLabel[intake.Reading](intake.Readings, read.WithLabelValues),
		in:     r.counter("pilotfish_request_body_bytes_total", "Bytes of the request bodies of ended jobs; bodies of unknown size are not counted."),
		out:    r.counter("pilotfish_response_body_bytes_total", "Bytes of response bodies forwarded to submitters."),
		notReplayable: r.counter("pilotfish_replay_disabled_total",
			"Jobs that could not be retried because their body did not fit into the memory for bodies (job.budget)."),
	}
	prefetches := r.counters("pilotfish_prefetches_total", "Prefetches by outcome. Prefetches are not counted as jobs.", "outcome")
	j.prefetches = byLabel[intake.Outcome](intake.Outcomes, prefetches.WithLabelValues)
	ended := r.counters("pilotfish_jobs_total", "Ended jobs by outcome.", "priority", "outcome")
	shed := r.counters("pilotfish_shed_total", "Jobs refused because of load or a limit, by reason.", "priority", "reason")
	for p := range selection.Priority(selection.Priorities) {
		j.outcomes[p] = byLabel[intake.Outcome](intake.Outcomes, ended.WithLabelValues, p.String())
		j.shed[p] = byLabel[intake.Shedding](intake.Sheddings, shed.WithLabelValues, p.String())
	}
	return j
}

func (j *jobs) ended(r *record.Job) {
	if r.Facts.Prefetch {
		j.prefetches[r.Outcome].Inc()
		return
	}
	p := r.Facts.Priority
	j.outcomes[p][r.Outcome].Inc()
	if r.Outcome == intake.Shed {
		j.shed[p][r.Shedding].Inc()
	}
	if r.Outcome.Tried() {
		j.duration[p].Observe(r.Total.Seconds())
		if r.Completeness != intake.Absent {
			j.ttfb[p].Observe(r.TTFB.Seconds())
		}
	}
	if waited, ok := r.Waited(); ok {
		j.wait[p].Observe(waited.Seconds())
	}
	if times, ok := r.Stretch(); ok {
		j.stretch[p].Observe(times)
	}
	if r.Body != 0 && r.Outcome != intake.Rejected && r.Outcome != intake.TooLarge {
		j.read[r.Read].Inc()
	}
	if r.Unkept {
		j.notReplayable.Inc()
	}
	j.in.Add(float64(max(0, r.Body))) // -1 means unknown
	j.out.Add(float64(r.Bytes))
}

// QueueEntered counts a job that enters the queue; QueueLeft must follow.
func (j *jobs) QueueEntered(p selection.Priority) { j.queued[p].Inc() }

// QueueLeft counts a job that leaves the queue, and its time there.
func (j *jobs) QueueLeft(p selection.Priority, waited time.Duration) {
	j.queued[p].Dec()
	j.waited[p].Observe(waited.Seconds())
}
