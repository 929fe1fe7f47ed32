package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// job is one job of the trace, from its arrival to its end.
type job struct {
	number                               int64 // line of the trace, from 1
	prefetch                             bool
	project                              uint64
	version                              int64
	shared                               uint64
	priority                             selection.Priority
	load, sharedRules, operators, output time.Duration
	bytes                                int64
	needs                                []need // besides the project's data
	// The job's own timeouts; 0 is none.
	queueBound, evaluateBound, streamBound time.Duration

	arrived  time.Duration // at the sidecar
	side     *sidecar
	dispatch *dispatch.Job
	attempts int
	last     Outcome // of the job, if no other attempt follows

	// The attempt under way.
	assignment *pool.Assignment
	sent       time.Duration // when it began
	answering  time.Duration // when its answer began; negative before
	watched    time.Duration // when a timeout is planned; never if none is

	// At the server.
	server   *server
	epoch    int
	slot     int // in server.present
	seq      uint64
	expected time.Duration // how long it will run
	before   time.Duration // how long those of its project that were there
	turn     time.Duration // its place among the jobs of its priority
	worked   time.Duration // how long the joblets that it needed ran
	phase    phase
	needed   int // of needs that it has got, while it fetches
	on       *joblet
	received time.Duration
	begun    time.Duration // negative until its first joblet runs
	fetches  bool          // it was the first to need its project's data, which was not cached
	cold     bool          // the data was not cached: it, or a job before it, fetches
	ended    bool
}

// need is data beside the project's that a job fetches after it.
type need struct {
	id    uint64
	load  time.Duration
	bytes int64
}

// parts are what the sidecar is told of a job's data; nil is the project alone.
func (j *job) parts() *intake.Parts {
	if len(j.needs) == 0 {
		return nil
	}
	set := &intake.Parts{Set: true, Parts: []intake.Part{{Key: j.project}}}
	for _, n := range j.needs {
		set.Parts = append(set.Parts, intake.Part{Key: n.id})
	}
	return set
}

// duration converts the trace's seconds, which keep their meaning to the nanosecond.
func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func newJob(t *trace.Job, number int64) *job {
	j := &job{
		number: number, prefetch: t.Prefetch,
		project: intake.Key(string(t.Project)), version: t.Version, shared: hash.Text(t.Shared),
		priority: t.Priority, bytes: t.Bytes,
		load: duration(t.Load), begun: -1, answering: -1, watched: never, last: Unserved,
		queueBound:    duration(t.Timeouts.Queue),
		evaluateBound: duration(t.Timeouts.Evaluate),
		streamBound:   duration(t.Timeouts.Stream),
	}
	if !t.Prefetch {
		j.sharedRules, j.operators, j.output = duration(t.SharedRules), duration(t.Operators), duration(t.Output)
	}
	for _, n := range t.Needs {
		j.needs = append(j.needs, need{intake.Key(string(n.Name)), duration(n.Load), n.Bytes})
	}
	return j
}

// forgetAttempt forgets an attempt that failed.
func (j *job) forgetAttempt() {
	j.assignment, j.server = nil, nil
	j.begun, j.answering, j.fetches, j.cold = -1, -1, false, false
}
