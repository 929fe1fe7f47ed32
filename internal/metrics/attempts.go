package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// attempts counts picks, cache finds and refused retries, and what another policy would have done.
type attempts struct {
	picked  []prometheus.Counter // by selection.Cache
	missed  []prometheus.Counter // by selection.Cache
	hit     []prometheus.Counter // by selection.Cache
	refused prometheus.Counter
	used    prometheus.Counter // of prefetches

	dedicated, ordinary prometheus.Counter // picks of heavy jobs

	same, other, cost, costThere prometheus.Counter // of the shadow policy
}

func newAttempts(r registrar) *attempts {
	finds := r.counters("pilotfish_cache_finds_total",
		"Jobs by whether they found their data cached, as the upstream tells, and by what was believed when it was picked.", "found", "believed")
	picks := r.counters("pilotfish_picks_total",
		"Attempts that ended by whether the upstream was believed to hold the project's data.", "cache")
	heavy := r.counters("pilotfish_heavy_picks_total",
		"Attempts of heavy jobs by the upstream: dedicated is for heavy jobs, ordinary is not, because none of those was eligible.", "upstream_kind")
	choices := r.counters("pilotfish_shadow_choices_total",
		"Picks by whether selection.shadow would have made the same.", "choice")
	costs := r.counters("pilotfish_shadow_cost_seconds_total",
		"Costs of the upstreams that were taken (policy), and of those that selection.shadow would have taken: both as selection.policy weighs them.", "of")
	caches := int(selection.Cached) + 1
	return &attempts{
		picked: byLabel[selection.Cache](caches, picks.WithLabelValues),
		missed: byLabel[selection.Cache](caches, finds.WithLabelValues, "miss"),
		hit:    byLabel[selection.Cache](caches, finds.WithLabelValues, "hit"),
		used: r.counter("pilotfish_prefetches_used_total",
			"Prefetches whose data a job used within a minute, before it was evicted."),
		refused: r.counter("pilotfish_retries_refused_total",
			"Retries not made because too many of the recent jobs were retried already."),
		dedicated: heavy.WithLabelValues("dedicated"), ordinary: heavy.WithLabelValues("ordinary"),
		same: choices.WithLabelValues("same"), other: choices.WithLabelValues("other"),
		cost: costs.WithLabelValues("policy"), costThere: costs.WithLabelValues("shadow"),
	}
}

// attempted counts an attempt, whether it found its data, and what the shadow would have done.
func (a *attempts) attempted(t *record.Attempt) {
	a.picked[t.Cache].Inc()
	switch {
	case t.Hint == nil || !t.Hint.Known:
	case t.Hint.Cached:
		a.hit[t.Cache].Inc()
	default:
		a.missed[t.Cache].Inc()
	}
	switch {
	case t.Dedicated:
		a.dedicated.Inc()
	case t.Heavy:
		a.ordinary.Inc()
	}
	if t.Prefetched {
		a.used.Inc()
	}
	switch t.Shadow {
	case "":
		return
	case t.Upstream:
		a.same.Inc()
	default:
		a.other.Inc()
	}
	a.cost.Add(t.Cost.Total)
	a.costThere.Add(t.ShadowCost)
}

// Ended counts a job that has ended, and its attempts.
func (m *Metrics) Ended(r *record.Job) {
	m.jobs.ended(r)
	if r.RetryRefused {
		m.attempts.refused.Inc()
	}
	for i := range r.Attempts {
		if !r.Facts.Prefetch {
			m.attempts.attempted(&r.Attempts[i])
		}
		m.upstreams.attempted(&r.Attempts[i])
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
