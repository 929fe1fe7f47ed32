package selection

// Priority orders jobs. A person waits for a high job, so high jobs go before low
// ones (the thesis, 2.3).
type Priority uint8

// The priorities. Low is the zero value: a job that names none is low.
const (
	Low Priority = iota
	High

	// Priorities is how many there are, for arrays indexed by Priority.
	Priorities = 2
)

// String returns the word that submitters, metrics and logs use.
func (p Priority) String() string {
	if p == High {
		return "high"
	}
	return "low"
}

// ParsePriority is the inverse of String; ok is false for any other word.
func ParsePriority(s string) (p Priority, ok bool) {
	switch s {
	case "high":
		return High, true
	case "low":
		return Low, true
	}
	return Low, false
}

// Job is all that a policy may know of a job. It has no field for what only a
// simulator could know, such as the job's true size.
type Job struct {
	// Project is a hash of the project's identifier; 0 is a job without
	// affinity.
	Project  uint64
	Priority Priority
	// Number counts the claims of this sidecar, for policies that take turns.
	Number uint64
	// Hour counts hours since 1970. With it, overload.Rank changes from hour to
	// hour which projects are refused first.
	Hour uint64
	// Fetch is the expected time to fetch the project's data, in seconds.
	Fetch float64
	// Open is this sidecar's open jobs of the project, not counting this one.
	Open float64
	// Length is how long answers to the project's jobs take to begin where its data is
	// cached, as this sidecar has learned, over the mean of all projects; 0 is not known.
	Length float64
}
