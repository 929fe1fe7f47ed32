package trace

import "slices"

// seen is what a log tells of the time that a job took, in seconds.
type seen struct {
	answered bool     // a response began
	took     float64  // from the job's arrival at the upstream to the end of the response
	wait     *float64 // at the upstream; nil where it does not tell
	cold     bool     // the project was taken to be not cached there
}

// work is the time without the wait.
func (s *seen) work() float64 {
	if s.wait == nil {
		return s.took
	}
	return max(0, s.took-*s.wait)
}

// estimate fills in what jobs cost. A log tells how long a job took, and at best how
// much of that was waiting and fetching. The rest is that of the operators. A job that was not
// answered costs what its project's jobs do.
//
// Where the upstream does not tell waits, a job's time counts as far as it
// is usual for its project with little load: the first quartile. Where it does not tell
// fetches, a fetch takes by how much longer the project's jobs last where it is not cached.
func estimate(all []entry) {
	everywhere := &observed{}
	projects := map[Project]*observed{}
	for i := range all {
		e := &all[i]
		o := projects[e.job.Project]
		if o == nil {
			o = &observed{}
			projects[e.job.Project] = o
		}
		o.add(e)
		everywhere.add(e)
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
	if !e.seen.answered {
		return
	}
	switch work := e.seen.work(); {
	case e.job.Load > 0:
		o.fetches = append(o.fetches, e.job.Load)
		o.warm = append(o.warm, max(0, work-e.job.Load))
	case e.seen.cold:
		o.cold = append(o.cold, work)
	default:
		o.warm = append(o.warm, work)
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
	c := costs{
		load:      otherwise.load,
		operators: quantileOr(warm, 0.5, otherwise.operators),
		low:       quantileOr(warm, 0.25, otherwise.low),
	}
	switch {
	case len(o.fetches) > 0:
		c.load = quantileOr(o.fetches, 0.5, 0)
	case len(o.cold) > 0 && len(o.warm) > 0:
		c.load = max(0, quantileOr(o.cold, 0.5, 0)-c.operators)
	}
	return c
}

// fill sets a job's costs.
func (c costs) fill(e *entry) {
	j, told := &e.job, e.job.Load
	if j.Load == 0 && j.Project != "" {
		j.Load = c.load
	}
	j.Operators = c.operators
	if !e.seen.answered {
		return
	}
	j.Operators = e.seen.work()
	if told > 0 {
		j.Operators = max(0, j.Operators-told)
	} else if e.seen.cold {
		j.Operators = max(0, j.Operators-j.Load)
	}
	if e.seen.wait == nil {
		j.Operators = min(j.Operators, c.low)
	}
}

// quantileOr is the quantile q of the values, or otherwise if there is none.
func quantileOr(values []float64, q, otherwise float64) float64 {
	if len(values) == 0 {
		return otherwise
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
