package trace

import (
	"cmp"
	"slices"
)

// estimate fills in what jobs cost. A job whose run is not known, or that was not answered, costs what its project's
// jobs do, but no more than it took. Where the upstream does not tell fetches, a fetch takes by how much longer
// the project's jobs run where it is not cached. Where that was not seen of any, it takes so many
// seconds, or as long as a job, and this is returned.
func estimate(all []entry, fetch float64) (assumed float64) {
	projects, everywhere := observe(all), observed{}
	for _, o := range projects {
		for i, values := range o {
			everywhere[i] = append(everywhere[i], values...)
		}
	}
	usual, of := everywhere.costs(costs{}), map[Project]costs{}
	if len(everywhere[cold])+len(everywhere[told]) == 0 {
		assumed = cmp.Or(fetch, usual.operators)
		usual.load = assumed
	}
	for p, o := range projects {
		of[p] = o.costs(usual)
	}
	for i := range all {
		e, j := &all[i], &all[i].job
		c, fetched := cmp.Or(of[j.Project], usual), e.cold || j.Load > 0
		if j.Project != "" {
			j.Load = cmp.Or(j.Load, c.load)
		}
		switch j.Operators = e.run; {
		case e.run == 0:
			if j.Operators = c.operators; e.answered {
				j.Operators = min(j.Operators, e.took)
			}
		case fetched:
			j.Operators = max(0, e.run-j.Load)
		}
	}
	return assumed
}

// observed is what was seen of the jobs of a project, or of all, in seconds: runs without a fetch and with
// one, and the fetches that upstreams told.
type observed [3][]float64

const warm, cold, told = 0, 1, 2

// observe gathers the runs that are known.
func observe(all []entry) map[Project]observed {
	projects := map[Project]observed{}
	for i := range all {
		e, o := &all[i], projects[all[i].job.Project]
		switch {
		case e.run == 0:
			continue
		case e.job.Load > 0:
			o[told], o[warm] = append(o[told], e.job.Load), append(o[warm], max(0, e.run-e.job.Load))
		case e.cold:
			o[cold] = append(o[cold], e.run)
		default:
			o[warm] = append(o[warm], e.run)
		}
		projects[e.job.Project] = o
	}
	return projects
}

// costs are what is usual of a project's jobs, in core-seconds.
type costs struct{ load, operators float64 }

func (o observed) costs(otherwise costs) costs {
	c := costs{otherwise.load, median(o[warm], median(o[cold], otherwise.operators))}
	if len(o[told]) > 0 {
		c.load = median(o[told], 0)
	} else if len(o[cold]) > 0 && len(o[warm]) > 0 {
		c.load = max(0, median(o[cold], 0)-c.operators)
	}
	return c
}

// median is that of the values, or otherwise if there is none.
func median(values []float64, otherwise float64) float64 {
	if len(values) == 0 {
		return otherwise
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
