package scenario

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/lab/workload"
)

// jobs says where the jobs of all runs come from.
type jobs struct {
	workload workload.Config // without a trace
	trace    *trace.File     // nil without one
	// count is how many jobs are played, length the time in which they come, in
	// seconds.
	count  int
	length float64
}

// source yields jobs in order of time.
type source interface {
	trace.Source
	io.Closer
}

// measure measures the jobs, of which a share is played, above 0 to 1. It reads a trace
// once to its end, to find what is wrong with it before any run begins.
func (s *Scenario) measure(share float64) error {
	j := &s.jobs
	if len(s.Trace) == 0 {
		j.workload = *s.Workload
		j.workload.Scale(share)
		j.count, j.length = j.workload.Len(), j.workload.Duration
		var f settings.Faults
		j.workload.Check(&f)
		return f.Err()
	}
	var err error
	if j.trace, err = trace.Open(s.Trace...); err != nil {
		return err
	}
	if err := j.scan(-1); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(s.Trace, ", "), err)
	}
	s.Notes = j.trace.Notes
	if share < 1 {
		return j.scan(max(1, int(float64(j.count)*share)))
	}
	return nil
}

// scan counts the first jobs of a trace, all if limit is negative.
func (j *jobs) scan(limit int) error {
	in, err := j.trace.Jobs(limit)
	if err != nil {
		return err
	}
	defer in.Close()
	j.count = 0
	costs := false
	err = trace.Each(in, func(job *trace.Job) error {
		j.count++
		j.length = job.Offset
		costs = costs || job.Work() > 0
		return nil
	})
	if err == nil && !costs {
		err = errors.New("no job says what it costs, in load_s, shared_s, operators_s or output_s: it cannot be simulated")
	}
	return err
}

// open returns the jobs that were measured, from the first on.
func (j *jobs) open(seed uint64) (source, error) {
	if j.trace != nil {
		return j.trace.Jobs(j.count)
	}
	c := j.workload
	c.Seed = seed
	g, err := workload.New(c)
	return generated{g}, err
}

// generated is the jobs that a workload invents.
type generated struct{ *workload.Generator }

func (generated) Close() error { return nil }

// Generated is the scenario's workload, with its seed. A scenario that has a trace has
// none.
func (s *Scenario) Generated() (workload.Config, error) {
	if len(s.Trace) > 0 {
		return workload.Config{}, errors.New("has a trace, nothing to generate")
	}
	c := *s.Workload
	c.Seed = s.Seed
	return c, nil
}
