package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// attempts counts picks, cache hits and misses, refused retries, and the choices of the shadow policy.
type attempts struct {
	picked  []prometheus.Counter // by selection.Cache
	missed  []prometheus.Counter // by selection.Cache
	hit     []prometheus.Counter // by selection.Cache
	refused prometheus.Counter
	used    prometheus.Counter // prefetches whose data was used

	dedicated, ordinary prometheus.Counter // picks of heavy jobs

	same, other, cost, costThere prometheus.Counter // comparison with the shadow policy
	found, shadowFound           pair
}

func newAttempts(r registrar) *attempts {
	believed := r.counters("pilotfish_cache_finds_total",
		"Jobs by cache hit or miss as reported by the upstream (found), and by the state expected when the upstream was picked (believed).", "found", "believed")
	picks := r.counters("pilotfish_picks_total",
		"Ended attempts by whether the upstream was expected to hold the project's data.", "cache")
	heavy := r.counters("pilotfish_heavy_picks_total",
		"Attempts of heavy jobs by kind of upstream: dedicated to heavy jobs, or ordinary if no dedicated upstream was eligible.", "upstream_kind")
	choices := r.counters("pilotfish_shadow_choices_total",
		"Picks by whether the policy selection.shadow would have picked the same upstream.", "choice")
	costs := r.counters("pilotfish_shadow_cost_seconds_total",
		"Estimated cost of the picked upstreams (policy), and of the upstreams that selection.shadow would have picked (shadow), both by the estimate of selection.policy.", "of")
	data := r.counters("pilotfish_data_finds_total",
		"Jobs that need data, by whether it was at the upstream that responded (policy), "+
			"and at the one that selection.shadow would have picked (shadow). As the upstream reports, or else as expected.", "of", "found")
	find := func(of string) pair {
		return pair{good: data.WithLabelValues(of, "hit"), bad: data.WithLabelValues(of, "miss")}
	}
	caches := int(selection.Cached) + 1
	return &attempts{
		picked: byLabel[selection.Cache](caches, picks.WithLabelValues),
		missed: byLabel[selection.Cache](caches, believed.WithLabelValues, "miss"),
		hit:    byLabel[selection.Cache](caches, believed.WithLabelValues, "hit"),
		used: r.counter("pilotfish_prefetches_used_total",
			"Prefetches whose data was used by a job within a minute, before eviction."),
		refused: r.counter("pilotfish_retries_refused_total",
			"Retries not made because the retry budget (retry.budget) was used up."),
		dedicated: heavy.WithLabelValues("dedicated"), ordinary: heavy.WithLabelValues("ordinary"),
		same: choices.WithLabelValues("same"), other: choices.WithLabelValues("other"),
		cost: costs.WithLabelValues("policy"), costThere: costs.WithLabelValues("shadow"),
		found: find("policy"), shadowFound: find("shadow"),
	}
}

// attempted counts an attempt, its cache hit or miss, and the choice of the shadow policy.
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
	if found, ok := r.Found(); ok && !r.Facts.Prefetch {
		m.attempts.found.count(found)
		if a := r.Attempt(); a.Shadow != "" {
			m.attempts.shadowFound.count(a.ShadowCache != selection.NotCached)
		}
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
