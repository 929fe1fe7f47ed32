package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// attempts counts attempts and refused retries.
type attempts struct {
	tried   []prometheus.Counter // by pool.Outcome
	missed  []prometheus.Counter // by selection.Cache
	hit     []prometheus.Counter // by selection.Cache
	refused prometheus.Counter
	moved   []prometheus.Counter // by pool.Reason
}

func newAttempts(r registrar) *attempts {
	tried := r.counters("pilotfish_attempts_total", "Attempts by how they ended.", "outcome")
	finds := r.counters("pilotfish_cache_finds_total",
		"Jobs by whether they found their data cached, as the upstream tells, and by what was believed when it was picked.", "found", "believed")
	caches := int(selection.Cached) + 1
	moved := r.counters("pilotfish_jobs_moved_total",
		"Jobs that waited at an upstream and were withdrawn to go to another, by why.", "reason")
	return &attempts{
		moved:  byLabel[pool.Reason](pool.Reasons, moved.WithLabelValues),
		tried:  byLabel[pool.Outcome](pool.Outcomes, tried.WithLabelValues),
		missed: byLabel[selection.Cache](caches, finds.WithLabelValues, "miss"),
		hit:    byLabel[selection.Cache](caches, finds.WithLabelValues, "hit"),
		refused: r.counter("pilotfish_retries_refused_total",
			"Retries not made because too many of the recent jobs were retried already."),
	}
}

// attempted counts an attempt, and whether it found its data.
func (a *attempts) attempted(t *Attempt) {
	a.tried[t.Outcome].Inc()
	switch {
	case t.Hint == nil || !t.Hint.Known:
	case t.Hint.Cached:
		a.hit[t.Believed].Inc()
	default:
		a.missed[t.Believed].Inc()
	}
}

// AttemptDone counts an attempt that ended, in all and at its upstream.
func (m *Metrics) AttemptDone(a Attempt) {
	m.attempts.attempted(&a)
	m.upstreams.attempted(&a)
}

// RetryRefused counts a retry that the retry budget did not allow.
func (a *attempts) RetryRefused() { a.refused.Inc() }

// JobMoved counts a job that was moved while it waited.
func (a *attempts) JobMoved(why pool.Reason) { a.moved[why].Inc() }

// picks counts and times the choices of an upstream.
type picks struct {
	made      []prometheus.Counter // by selection.Cache
	took      *histogram
	panicking prometheus.Gauge
}

func newPicks(r registrar) *picks {
	made := r.counters("pilotfish_picks_total",
		"Picks by whether the upstream was believed to hold the project's data.", "cache")
	took := r.histograms("pilotfish_pick_seconds", "Time to filter the upstreams and pick one.", pickSeconds)
	return &picks{
		made: byLabel[selection.Cache](int(selection.Cached)+1, made.WithLabelValues),
		took: took.with(),
		panicking: r.gauge("pilotfish_panic_mode",
			"1 if the last pick ignored the breakers because too many were open, else 0."),
	}
}

// Picked counts a pick, and how long it took. panicking says that it ignored the
// breakers.
func (p *picks) Picked(c selection.Cache, took time.Duration, panicking bool) {
	p.made[c].Inc()
	p.took.Observe(took.Seconds())
	p.panicking.Set(boolean(panicking))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
