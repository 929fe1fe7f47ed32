package intake

// Outcome is how a job ended, as its submitter saw it.
type Outcome uint8

// The outcomes of a job, a closed set. Outcomes that attempts have, too, share their
// names with package pool.
const (
	// Answered: a response with a status below 500 was forwarded completely.
	Answered Outcome = iota
	// Failed: a response with a status of 500 or more was forwarded completely.
	Failed
	// Truncated: the upstream aborted its response.
	Truncated
	// NoAnswer: all attempts failed without a response.
	NoAnswer
	// Deadline: a timeout of the job passed before the end of its response.
	Deadline
	// Gone: the submitter disconnected before the end of the response.
	Gone
	// Shed: refused because of load or a limit.
	Shed
	// Rejected: refused because the request is invalid.
	Rejected
	// TooLarge: refused because the body exceeds job.max_body.
	TooLarge
	// Broken: pilotfish had an internal error.
	Broken

	// Outcomes is the number of outcomes.
	Outcomes = int(Broken) + 1
)

// String returns the outcome's label in metrics, logs and traces.
func (o Outcome) String() string {
	return [Outcomes]string{
		"answered", "failed", "truncated", "no_response", "deadline", "gone",
		"shed", "rejected", "too_large", "broken",
	}[o]
}

// Tried reports whether jobs with this outcome were accepted: they reached an
// upstream or waited for one.
func (o Outcome) Tried() bool { return o <= Gone }

// Completeness is how much of an upstream's response was forwarded to the
// submitter.
type Completeness uint8

// The degrees of completeness, a closed set, as in Phoenix's results.
const (
	// Absent: nothing of a response was forwarded. Pilotfish may have sent an error response.
	Absent Completeness = iota
	// Partial: only the beginning of a response was forwarded.
	Partial
	// Complete: a whole response was forwarded.
	Complete

	// Completenesses is the number of degrees.
	Completenesses = int(Complete) + 1
)

// String returns the degree's label in metrics and logs.
func (c Completeness) String() string {
	return [Completenesses]string{"absent", "partial", "complete"}[c]
}

// Shedding is the reason for which a job was shed.
type Shedding uint8

// The reasons, a closed set.
const (
	// QueueFull: the sidecar's queue was full.
	QueueFull Shedding = iota
	// Displaced: a job of high priority displaced it from the full queue.
	Displaced
	// Waited: no upstream became eligible within its queue timeout.
	Waited
	// Stopping: pilotfish is shutting down.
	Stopping
	// ProjectLimit: its project has reached projects.limit, the limit of jobs in flight.
	ProjectLimit
	// ProjectRate: its project exceeds projects.per_minute, the limit of jobs per minute.
	ProjectRate
	// NoRoom: other jobs used up the memory for bodies.
	NoRoom

	// Sheddings is the number of reasons.
	Sheddings = int(NoRoom) + 1
)

// Limits reports whether the reason is a limit that the operator set on projects. Such a refusal is not a failure.
func (s Shedding) Limits() bool { return s == ProjectLimit || s == ProjectRate }

// String returns the reason's label in metrics and logs.
func (s Shedding) String() string {
	return [Sheddings]string{"queue_full", "displaced", "waited", "shutting_down", "project_limit", "project_rate", "no_room"}[s]
}

// Reading is how much of a job's members could be read.
type Reading uint8

// The values of Reading; there are no others.
const (
	// Unread: no member could be read. The job is treated as low priority without a project.
	Unread Reading = iota
	// Partly: the kept bytes of the body end before the project or the priority.
	Partly
	// NoProject: all members were read, and the job has no project.
	NoProject
	// Full: all members were read, and the job has a project.
	Full

	// Readings is the number of degrees.
	Readings = int(Full) + 1
)

// String returns the degree's label in metrics and logs.
func (r Reading) String() string {
	return [Readings]string{"unread", "partly", "no_project", "full"}[r]
}
