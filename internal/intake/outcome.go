package intake

// Outcome is how a job ended, as its submitter saw it.
type Outcome uint8

// The outcomes of a job, a closed set. Where an attempt can end the same way,
// the word is the same.
const (
	// Answered: a response with a status below 500 was passed on to its end.
	Answered Outcome = iota
	// Failed: a response with a status of 500 or more was passed on to its end.
	Failed
	// Truncated: a response began, and the upstream cut it short.
	Truncated
	// NoAnswer: attempts were made, and none had a response.
	NoAnswer
	// Deadline: the job's time was over before its response was.
	Deadline
	// Gone: the submitter left while it waited or read.
	Gone
	// Shed: refused for load.
	Shed
	// Rejected: refused as invalid.
	Rejected
	// TooLarge: refused because its body is longer than a body may be.
	TooLarge
	// Broken: pilotfish itself failed.
	Broken

	// Outcomes is how many there are.
	Outcomes = int(Broken) + 1
)

// String returns the outcome's word in metrics, logs and traces.
func (o Outcome) String() string {
	return [Outcomes]string{
		"answered", "failed", "truncated", "no_answer", "deadline", "gone",
		"shed", "rejected", "too_large", "broken",
	}[o]
}

// Tried reports whether jobs with this outcome were not refused: they had an
// upstream, or waited for one.
func (o Outcome) Tried() bool { return o <= Gone }

// Completeness is how much of an upstream's response the submitter got, as far
// as pilotfish can tell.
type Completeness uint8

// The degrees, a closed set (Phoenix's complete, partial and absent results).
const (
	// Absent: no response of an upstream began. Pilotfish may have answered itself.
	Absent Completeness = iota
	// Partial: a response began, and its end was not passed on.
	Partial
	// Complete: a response was passed on to its end.
	Complete

	// Completenesses is how many there are.
	Completenesses = int(Complete) + 1
)

// String returns the degree's word in metrics and logs.
func (c Completeness) String() string {
	return [Completenesses]string{"absent", "partial", "complete"}[c]
}

// Shedding is why a job was refused for load.
type Shedding uint8

// The reasons, a closed set.
const (
	// QueueFull: there was no room to wait.
	QueueFull Shedding = iota
	// Displaced: it waited, and a job of high priority needed its place.
	Displaced
	// Waited: no upstream became eligible in the time that it could wait.
	Waited
	// Stopping: pilotfish is shutting down.
	Stopping
	// ProjectLimit: its project has as many jobs in flight as it may have.
	ProjectLimit
	// ProjectRate: its project submits more jobs per minute than it may.
	ProjectRate
	// NoRoom: the bodies of other jobs took all the memory for bodies.
	NoRoom

	// Sheddings is how many there are.
	Sheddings = int(NoRoom) + 1
)

// Limits reports whether the reason is a limit that the operator set on the job's project: no failure.
func (s Shedding) Limits() bool { return s == ProjectLimit || s == ProjectRate }

// String returns the reason's word in metrics and logs.
func (s Shedding) String() string {
	return [Sheddings]string{"queue_full", "displaced", "waited", "shutting_down", "project_limit", "project_rate", "no_room"}[s]
}

// Reading is how much was read of what a job says of itself.
type Reading uint8

// The degrees, a closed set.
const (
	// Unread: nothing was read. The job counts as one of low priority without a project.
	Unread Reading = iota
	// Partly: the kept bytes end before both the project and the priority.
	Partly
	// NoProject: all was read, and there is no project.
	NoProject
	// Full: all was read, with a project.
	Full

	// Readings is how many there are.
	Readings = int(Full) + 1
)

// String returns the degree's word in metrics and logs.
func (r Reading) String() string {
	return [Readings]string{"unread", "partly", "no_project", "full"}[r]
}
