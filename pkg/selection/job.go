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
	// affinity. If a job needs several pieces of data, it is the hash of the one that decides where the job
	// goes.
	Project  uint64
	Priority Priority
	// Number counts the claims of this sidecar, for policies that take turns.
	Number uint64
	// Hour counts hours since 1970. With it, overload.Rank changes from hour to
	// hour which projects are refused first.
	Hour uint64
	// Once is the probability that no other job of the project comes.
	Once float64
	// Prompt says that the job's data is a prompt to a language model. An upstream reads prompts one at a time.
	Prompt bool
	// QueuedBehind is the expected number of prompts that will wait while this one is read.
	QueuedBehind float64
	// FirstPlaceHitRate is a cache hit rate at first-ranked upstreams, from 0 to 1: of the bytes of prompts
	// that this sidecar had not sent there before, the share that was cached because other sidecars had sent
	// it.
	FirstPlaceHitRate float64
	// Fetch is the expected time to fetch all data that the job needs, in seconds.
	Fetch float64
	// Service is how long a core takes for a job, in the median of the upstreams, in
	// seconds; 0 is unknown.
	Service float64
}

// unknownService is the assumed service time while it is unknown.
const unknownService = 12

func (j *Job) service() float64 {
	if j.Service > 0 {
		return j.Service
	}
	return unknownService
}

// Rate is how many jobs v completes in a second when every core is busy, also where v
// does not report it.
func (j *Job) Rate(v *View) float64 {
	if v.Rate > 0 {
		return v.Rate
	}
	return v.cores() / j.service()
}
