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
	project uint64 // hash of the project

	arrived  time.Duration // at the sidecar
	side     *sidecar
	dispatch *dispatch.Job
	attempts int
	tries    int           // earlier submissions by the same person
	earlier  time.Duration // wait for the earlier submissions
	last     Outcome       // outcome of the job if no other attempt follows
	twin     *job          // the other copy of a hedged job

	// The current attempt.
	assignment *pool.Assignment
	sent       time.Duration // start of the attempt
	answering  time.Duration // start of the response; negative before
	watched    time.Duration // time of the scheduled timeout check; never if there is none

	// At the server.
	server   *server
	seq      uint64
	expected time.Duration // expected duration
	// sentLength is the duration that the sidecar expects; 0 is unknown.
	sentLength time.Duration
	before     time.Duration // expected duration of the project's jobs that were present at arrival
	turn       time.Duration // sort key among the jobs of its priority
	worked     time.Duration // total duration of the joblets it used
	ran        time.Duration // the part of worked during which this job was present
	joined     time.Duration // when it joined its current joblet
	phase      phase
	needed     int // number of Needs fetched so far
	on         *joblet
	received   time.Duration
	begun      time.Duration // start of its first joblet; negative before
	fetches    bool          // it caused the fetch of its project's data
	cold       bool          // the data was not cached: this job or an earlier one fetches it
	ended      bool
}

func newJob(t *trace.Job, number int64) *job {
	return &job{
		Job: *t, number: number, project: intake.Key(string(t.Project)),
		begun: -1, answering: -1, watched: never, last: Unserved,
	}
}

// parts returns the parts of a job's data for the sidecar; nil means the project alone.
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
