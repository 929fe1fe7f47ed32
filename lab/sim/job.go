package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
)

// job is one job of the trace, from its arrival to its end.
type job struct {
	trace.Job
	number  int64  // line of the trace, from 1
	project uint64 // by which policies know it

	arrived  time.Duration // at the sidecar
	side     *sidecar
	dispatch *dispatch.Job
	attempts int
	tries    int           // how often its person sent it before
	earlier  time.Duration // how long that person has waited before
	last     Outcome       // of the job, if no other attempt follows
	twin     *job          // its copy at another upstream, or what it is a copy of

	// The attempt under way.
	assignment *pool.Assignment
	sent       time.Duration // when it began
	answering  time.Duration // when its answer began; negative before
	watched    time.Duration // when a timeout is planned; never if none is

	// At the server.
	server   *server
	seq      uint64
	expected time.Duration // how long it will run
	before   time.Duration // how long those of its project that were there
	turn     time.Duration // its place among the jobs of its priority
	worked   time.Duration // how long the joblets that it needed ran
	ran      time.Duration // the part of it in which this job was there
	joined   time.Duration // when it came to its joblet
	phase    phase
	needed   int // of Needs that it has got, while it fetches
	on       *joblet
	received time.Duration
	begun    time.Duration // negative until its first joblet runs
	fetches  bool          // it was the first to need its project's data, which was not cached
	cold     bool          // the data was not cached: it, or a job before it, fetches
	ended    bool
}

func newJob(t *trace.Job, number int64) *job {
	return &job{
		Job: *t, number: number, project: intake.Key(string(t.Project)),
		begun: -1, answering: -1, watched: never, last: Unserved,
	}
}

// parts are what the sidecar is told of a job's data; nil is the project alone.
func (j *job) parts() *intake.Parts {
	if len(j.Needs) == 0 {
		return nil
	}
	set := &intake.Parts{Set: true, Parts: []intake.Part{{Key: j.project}}}
	for _, n := range j.Needs {
		set.Parts = append(set.Parts, intake.Part{Key: intake.Key(string(n.Name))})
	}
	return set
}
