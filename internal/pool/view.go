package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// view fills v with the load, by the last report if that is fresh.
func (m *member) view(v *selection.View, now time.Time, cfg *Config) {
	fresh := m.fresh(now, cfg)
	v.ID, v.Weight, v.Cores = m.id, m.Weight, m.cores()
	v.InFlight = float64(m.load.inFlight)
	v.Jobs = m.load.present(fresh)
	v.Assigned = m.load.assigned(fresh)
	v.Unread = m.unread.left(now)
	v.Rate = v.Cores * m.believed.pace
	v.Latency = m.latency.value
	v.Fresh = fresh
}

// expect fills v with what depends on the job's data and the time. Where the upstream has the data,
// it says how large that is.
func (m *member) expect(v *selection.View, n *need, now time.Time, cfg *Config) {
	v.Cache, v.Warm, _ = m.holds(n, now, cfg)
	if !m.StopsAt.IsZero() {
		v.Left = max(m.StopsAt.Sub(now).Seconds(), 1e-3)
	}
}
