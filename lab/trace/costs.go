package trace

import (
	"cmp"
	"slices"
)

// estimate fills in what jobs cost. A log tells how long a job took, and at best how
// much of that was waiting and fetching. The rest is that of the operators. A job that was not
// answered costs what its project's jobs do.
//
// Where the upstream does not tell waits, a job's time counts as far as it
// is usual for its project with little load: the first quartile. Where it does not tell
// fetches, a fetch takes by how much longer the project's jobs last where it is not cached.
func estimate(all []entry) {
	everywhere, projects := &observed{}, map[Project]*observed{}
	for i := range all {
		e := &all[i]
		if projects[e.job.Project] == nil {
			projects[e.job.Project] = &observed{}
		}
		if e.answered {
			projects[e.job.Project].add(e)
			everywhere.add(e)
		}
	}
	usual := everywhere.costs(costs{})
	of := map[Project]costs{}
	for p, o := range projects {
		of[p] = o.costs(usual)
	}
	for i := range all {
		of[all[i].job.Project].fill(&all[i])
	}
}

// observed is what was seen of the jobs of a project, or of all, in seconds.
type observed struct {
	fetches    []float64 // that upstreams told
	cold, warm []float64 // work
}

func (o *observed) add(e *entry) {
	switch {
	case e.job.Load > 0:
		o.fetches = append(o.fetches, e.job.Load)
		o.warm = append(o.warm, max(0, e.work()-e.job.Load))
	case e.cold:
		o.cold = append(o.cold, e.work())
	default:
		o.warm = append(o.warm, e.work())
	}
}

// costs are what is usual of a project's jobs, in core-seconds.
type costs struct {
	load, operators float64
	low             float64 // the first quartile of the operators
}

func (o *observed) costs(otherwise costs) costs {
	warm := o.warm
	if len(warm) == 0 {
		warm = o.cold
	}
	c := costs{otherwise.load, quantile(warm, 0.5, otherwise.operators), quantile(warm, 0.25, otherwise.low)}
	if len(o.fetches) > 0 {
		c.load = quantile(o.fetches, 0.5, 0)
	} else if len(o.cold) > 0 && len(o.warm) > 0 {
		c.load = max(0, quantile(o.cold, 0.5, 0)-c.operators)
	}
	return c
}

// fill sets a job's costs.
func (c costs) fill(e *entry) {
	j, fetched := &e.job, e.cold || e.job.Load > 0
	if j.Project != "" {
		j.Load = cmp.Or(j.Load, c.load)
	}
	j.Operators = c.operators
	if !e.answered {
		return
	}
	if j.Operators = e.work(); fetched {
		j.Operators = max(0, j.Operators-j.Load)
	}
	if e.wait == nil {
		j.Operators = min(j.Operators, c.low)
	}
}

// quantile is the quantile q of the values, or otherwise if there is none.
func quantile(values []float64, q, otherwise float64) float64 {
	if len(values) == 0 {
		return otherwise
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
