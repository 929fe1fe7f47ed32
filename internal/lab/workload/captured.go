package workload

import (
	"slices"

	"example.org/pilotfish/pkg/trace"
)

// EstimateCosts fills in what the jobs of a capture cost, where it does not say: a sidecar
// sees how long a job took, and at best how much of that was waiting and fetching. The
// time to the first byte without both is that of the operators, and the time after it
// that of the output. A job that was not answered costs what its project's jobs do.
//
// Where the upstream does not tell waits, a job's time to first byte counts as far as it
// is usual for its project with little load: the first quartile. Where it does not tell
// fetches, a fetch takes by how much longer the project's jobs wait for their first byte
// where it is not cached.
func EstimateCosts(jobs []trace.Job) {
	all := &observed{}
	projects := map[trace.Project]*observed{}
	for i := range jobs {
		o := projects[jobs[i].Project]
		if o == nil {
			o = &observed{}
			projects[jobs[i].Project] = o
		}
		o.add(&jobs[i])
		all.add(&jobs[i])
	}
	usual := all.costs(costs{})
	of := map[trace.Project]costs{}
	for p, o := range projects {
		of[p] = o.costs(usual)
	}
	for i := range jobs {
		if j := &jobs[i]; estimated(j) {
			of[j.Project].fill(j)
		}
	}
}

// estimated reports whether a job's costs are to be estimated.
func estimated(j *trace.Job) bool {
	return j.Measured != nil && j.Kind == trace.Process && j.SharedRules+j.Operators+j.Output == 0
}

// observed is what was seen of the jobs of a project, or of all, in seconds.
type observed struct {
	fetches    []float64 // that upstreams told
	cold, warm []float64 // time to first byte at the upstream, without the wait
	output     []float64
}

func (o *observed) add(j *trace.Job) {
	m := j.Measured
	if !estimated(j) || m.TTFB == nil {
		return
	}
	if m.TTLB != nil {
		o.output = append(o.output, *m.TTLB-*m.TTFB)
	}
	first := firstByte(m)
	switch {
	case j.Load > 0:
		o.fetches = append(o.fetches, j.Load)
		o.warm = append(o.warm, max(0, first-j.Load))
	case m.Cache == "none":
		o.cold = append(o.cold, first)
	default:
		o.warm = append(o.warm, first)
	}
}

// firstByte is the time to first byte at the upstream that answered, without the wait.
func firstByte(m *trace.Measured) float64 {
	first := *m.TTFB
	if n := len(m.Attempts); n > 0 {
		first -= m.Attempts[n-1].Start
	}
	if m.Wait != nil {
		first -= *m.Wait
	}
	return max(0, first)
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
func (c costs) fill(j *trace.Job) {
	m, told := j.Measured, j.Load
	if j.Load == 0 && j.Project != "" {
		j.Load = c.load
	}
	j.Operators, j.Output = c.operators, c.output
	if m.TTFB == nil {
		return
	}
	j.Operators = firstByte(m)
	if told > 0 {
		j.Operators = max(0, j.Operators-told)
	} else if m.Cache == "none" {
		j.Operators = max(0, j.Operators-j.Load)
	}
	if m.Wait == nil {
		j.Operators = min(j.Operators, c.low)
	}
	if m.TTLB != nil {
		j.Output = *m.TTLB - *m.TTFB
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
