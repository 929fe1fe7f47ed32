package trace

import (
	"cmp"
	"slices"
)

// estimate sets the costs of jobs. A job with an unknown execution time, or without a response, gets the usual cost of
// its project's jobs, at most its duration. If the upstream does not report fetches, the time of a fetch is the
// difference between execution times with a miss and with a hit. If no miss is known, it is fetch, or with 0 the
// usual execution time; then estimate returns it as assumed.
func estimate(all []entry, fetch float64) (assumed float64) {
	projects, everywhere := observe(all), observed{}
	for _, o := range projects {
		for i, values := range o {
			everywhere[i] = append(everywhere[i], values...)
		}
	}
	usual, of := everywhere.costs(costs{}), map[Project]costs{}
	if len(everywhere[cold])+len(everywhere[reported]) == 0 {
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

// observed has times of one project's jobs, or of all jobs, in seconds: execution times without a fetch, those with
// one, and the fetch times that upstreams reported.
type observed [3][]float64

const warm, cold, reported = 0, 1, 2

// observe collects the known execution times by project.
func observe(all []entry) map[Project]observed {
	projects := map[Project]observed{}
	for i := range all {
		e, o := &all[i], projects[all[i].job.Project]
		switch {
		case e.run == 0:
			continue
		case e.job.Load > 0:
			o[reported], o[warm] = append(o[reported], e.job.Load), append(o[warm], max(0, e.run-e.job.Load))
		case e.cold:
			o[cold] = append(o[cold], e.run)
		default:
			o[warm] = append(o[warm], e.run)
		}
		projects[e.job.Project] = o
	}
	return projects
}

// costs are the usual costs of a project's jobs, in core-seconds.
type costs struct{ load, operators float64 }

func (o observed) costs(fallback costs) costs {
	c := costs{fallback.load, median(o[warm], median(o[cold], fallback.operators))}
	if len(o[reported]) > 0 {
		c.load = median(o[reported], 0)
	} else if len(o[cold]) > 0 && len(o[warm]) > 0 {
		c.load = max(0, median(o[cold], 0)-c.operators)
	}
	return c
}

// median returns the median of the values, or fallback if there are none.
func median(values []float64, fallback float64) float64 {
	if len(values) == 0 {
		return fallback
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
