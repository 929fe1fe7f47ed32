package metrics

import "github.com/prometheus/client_golang/prometheus"

// reloads counts the configurations read while running.
type reloads struct {
	applied, refused prometheus.Counter
	last             prometheus.Gauge
}

func newReloads(r *registrar) *reloads {
	results := r.counters("pilotfish_config_reloads_total",
		"Reloads of the configuration; a refused one changed nothing.", "result")
	c := &reloads{
		applied: results.WithLabelValues("applied"),
		refused: results.WithLabelValues("refused"),
		last: r.gauge("pilotfish_config_last_reload_success",
			"1 if the configuration read last is in force, 0 if it was refused."),
	}
	c.last.Set(1) // the one read at the start
	return c
}

// Reloaded counts a reload of the configuration.
func (c *reloads) Reloaded(applied bool) {
	if applied {
		c.applied.Inc()
	} else {
		c.refused.Inc()
	}
	c.last.Set(boolean(applied))
}
