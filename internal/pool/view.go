package pool

import (
	"math"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// look fills candidate with the eligible upstreams, views with what the policy
// sees of them, and job.Busy. It tells how many breakers are not ready;
// ignoreGates counts their upstreams in, ignoreHolds those that
// have just refused a job. It goes through all upstreams for every
// claim, so it asks each thing once.
func (p *Pool) look(now time.Time, job *selection.Job, tried []string, ignoreGates, ignoreHolds bool) (shut int) {
	p.candidate, p.ranked = p.candidate[:0], false
	p.views = slices.Grow(p.views[:0], len(p.set))[:len(p.set)]
	jobs, cores := 0.0, 0.0
	for _, m := range p.set {
		if !m.gate.Ready(now) {
			shut++
			if !ignoreGates {
				continue
			}
		}
		if now.Before(m.held) && !ignoreHolds || m.Draining && !p.draining || slices.Contains(tried, m.Address) {
			continue
		}
		age := now.Sub(m.report.At)
		fresh := m.fresh(now, &p.cfg)
		if fresh && !m.level.Admits(*job) {
			p.ranked = p.ranked || m.level > 0
			continue
		}
		v := &p.views[len(p.candidate)]
		p.candidate = append(p.candidate, m)
		m.view(v, fresh, &p.cfg)
		if fresh {
			v.Age = age.Seconds()
		}
		m.expect(v, job.Project, now, &p.cfg)
		jobs += v.Jobs
		cores += v.Cores
	}
	p.views = p.views[:len(p.candidate)]
	job.Busy = jobs / cores
	return shut
}

// view fills v with the load, by the last report if that is fresh.
func (m *member) view(v *selection.View, fresh bool, cfg *Config) {
	own := float64(m.inFlight)
	*v = selection.View{}
	v.ID, v.Weight, v.Cores = m.id, m.Weight, m.cores(cfg)
	v.FetchFactor = m.fetchFactor
	v.InFlight = own
	v.Jobs = m.present(fresh)
	v.Rate = v.Cores * m.rate.perCore()
	v.Latency = m.latency.value
	v.IdleIO = 1 / float64(1+m.cold)
	busy := v.Jobs
	if fresh {
		r := &m.report
		v.Stalled = sum(r.Stalled)
		v.Assigned = sum(r.Running) + v.Stalled + float64(m.assigned)
		if r.CoresBusy >= 0 {
			busy = r.CoresBusy
		}
	} else {
		v.Assigned = own
		v.Age = math.Inf(1)
	}
	v.IdleCPU = max(0, 1-busy/v.Cores)
}

// expect fills v with what depends on the project and the time.
func (m *member) expect(v *selection.View, project uint64, now time.Time, cfg *Config) {
	v.Cache = m.cache(project, now, cfg)
	switch v.Cache {
	case selection.Cached:
		v.Warm = 1
	case selection.AssumedCached:
		v.Warm = 0.95
	}
	v.Uptime, v.Left = math.Inf(1), math.Inf(1)
	if !m.up.IsZero() {
		v.Uptime = now.Sub(m.up).Seconds()
	}
	if !m.StopsAt.IsZero() {
		v.Left = m.StopsAt.Sub(now).Seconds()
	}
}
