package trace

import "slices"

// seen is what a log tells of the time that a job took, in seconds.
type seen struct {
	answered bool // a response began
	whole    bool // and came to its end
	// first is from the job's arrival at the upstream to the first byte of the response,
	// output from there to the end.
	first, output float64
	wait          *float64 // at the upstream; nil where it does not tell
	cold          bool     // the project was taken to be not cached there
}

// work is the time to the first byte without the wait.
func (s *seen) work() float64 {
	if s.wait == nil {
		return s.first
	}
	return max(0, s.first-*s.wait)
}

// estimate fills in what jobs cost. A log tells how long a job took, and at best how
// much of that was waiting and fetching. The time to the first byte without both is that
// of the operators, and the time after it that of the output. A job that was not
// answered costs what its project's jobs do.
//
// Where the upstream does not tell waits, a job's time to first byte counts as far as it
// is usual for its project with little load: the first quartile. Where it does not tell
// fetches, a fetch takes by how much longer the project's jobs wait for their first byte
// where it is not cached.
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
	cold, warm []float64 // work up to the first byte
	output     []float64
}

func (o *observed) add(e *entry) {
	if !e.seen.answered {
		return
	}
	if e.seen.whole {
		o.output = append(o.output, e.seen.output)
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
	load, operators, output float64
	low                     float64 // the first quartile of the operators
}

func (o *observed) costs(otherwise costs) costs {
	warm := o.warm
	if len(warm) == 0 {
		warm = o.cold
	}
	c := costs{
		load:      otherwise.load,
		operators: quantileOr(warm, 0.5, otherwise.operators),
		output:    quantileOr(o.output, 0.5, otherwise.output),
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
	j.Operators, j.Output = c.operators, c.output
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
	if e.seen.whole {
		j.Output = e.seen.output
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
