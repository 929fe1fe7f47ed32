package scenario

import (
	"errors"
	"fmt"
	"io"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/trace"
)

// jobs says where the jobs of a run come from.
type jobs struct {
	workload workload.Config // without a trace
	trace    string          // a file, or ""
	speed    float64         // of the trace
	// count is how many jobs are played, length the time in which they come, in
	// seconds.
	count  int
	length float64
}

// newJobs is the jobs of a workload or, without one, of a trace. Without both it
// is the default workload.
func newJobs(w *workload.Config, trace string, speed float64) jobs {
	switch {
	case w != nil:
		return jobs{workload: *w}
	case trace != "":
		return jobs{trace: trace, speed: speed}
	}
	return jobs{workload: workload.Default()}
}

// source yields jobs in order of time.
type source interface {
	sim.Source
	io.Closer
}

// measure fills in count and length for a share of the jobs, above 0 to 1. It
// reads a trace once to its end, to find what is wrong with it before any run
// begins.
func (j *jobs) measure(share float64) error {
	if j.trace == "" {
		c := &j.workload
		c.Scale(share)
		j.count, j.length = c.Len(), c.Duration
		var f settings.Faults
		c.Check(&f)
		return f.Err()
	}
	if err := j.scan(-1); err != nil || share == 1 {
		return err
	}
	return j.scan(max(1, int(float64(j.count)*share)))
}

// scan reads the first jobs of a trace, all if limit is negative.
func (j *jobs) scan(limit int) error {
	in, err := OpenTrace(j.trace, limit)
	if err != nil {
		return err
	}
	defer in.Close()
	j.count = 0
	costs := false
	for {
		job, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		j.count++
		j.length = job.Offset / j.speed
		costs = costs || job.Work() > 0
	}
	if !costs {
		return fmt.Errorf("%s: no job says what it costs, in load_s, shared_s, operators_s or output_s: it cannot be simulated", j.trace)
	}
	return nil
}

// open returns the jobs that were measured, from the first on.
func (j *jobs) open(seed uint64) (source, error) {
	if j.trace != "" {
		in, err := OpenTrace(j.trace, j.count)
		return &faster{in, j.speed}, err
	}
	c := j.workload
	c.Seed = seed
	g, err := workload.New(c)
	return generated{g}, err
}

// describe tells people what the jobs are.
func (j *jobs) describe() string {
	from := "generated"
	if j.trace != "" {
		from = "of " + j.trace
	}
	return fmt.Sprintf("%s jobs %s, over %s", stats.Thousands(j.count), from, stats.Span(j.length))
}

// faster is the jobs of a trace that passes at a speed.
type faster struct {
	*Trace
	speed float64
}

func (f *faster) Next() (trace.Job, error) {
	job, err := f.Trace.Next()
	job.Offset /= f.speed
	return job, err
}

// generated is the jobs that a workload invents.
type generated struct{ *workload.Generator }

func (generated) Close() error { return nil }
