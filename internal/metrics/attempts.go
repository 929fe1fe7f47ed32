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
	refused prometheus.Counter
}

func newAttempts(r registrar) *attempts {
	tried := r.counters("pilotfish_attempts_total", "Attempts by how they ended.", "outcome")
	return &attempts{
		tried: byLabel[pool.Outcome](pool.Outcomes, tried.WithLabelValues),
		refused: r.counter("pilotfish_retries_refused_total",
			"Retries not made because too many of the recent jobs were retried already."),
	}
}

// AttemptDone counts an attempt that ended.
func (a *attempts) AttemptDone(o pool.Outcome) { a.tried[o].Inc() }

// RetryRefused counts a retry that the retry budget did not allow.
func (a *attempts) RetryRefused() { a.refused.Inc() }

// picks counts and times the choices of an upstream.
type picks struct {
	made      []prometheus.Counter // by selection.Cache
	took      prometheus.Observer
	panicking prometheus.Gauge
}

func newPicks(r registrar) *picks {
	made := r.counters("pilotfish_picks_total",
		"Picks by whether the upstream was believed to hold the project's data.", "cache")
	took := r.histograms("pilotfish_pick_seconds", "Time to filter the upstreams and pick one.", pickSeconds)
	return &picks{
		made: byLabel[selection.Cache](int(selection.Cached)+1, made.WithLabelValues),
		took: took.WithLabelValues(),
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
