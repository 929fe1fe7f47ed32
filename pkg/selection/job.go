package selection

// Priority orders jobs. A person waits for a high job, so high jobs go before low
// ones (the thesis, 2.3).
type Priority uint8

// The priorities. Low is the zero value: a job that names none is low.
const (
	Low Priority = iota
	High

	// Priorities is the number of priorities, the length of arrays indexed by Priority.
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

// Job is what a policy can know of a job. It has no field that only a simulator could fill in, such as the job's true
// duration.
type Job struct {
	// Project is a hash of the project's identifier; 0 means no project. If a job needs several pieces of data, it is
	// the hash of the one that places the job.
	Project  uint64
	Priority Priority
	// Number counts the claims of this sidecar, for round-robin policies.
	Number uint64
	// Hour counts hours since 1970. With it, overload.Rank changes from hour to
	// hour which projects are refused first.
	Hour uint64
	// OneOffProbability is the probability that the project has no other job.
	OneOffProbability float64
	// Open is the number of this sidecar's jobs of the project that have not ended.
	Open float64
	// Prompt says that the job's data is a prompt to a language model. An upstream reads prompts one at a time.
	Prompt bool
	// QueuedBehind is the expected number of prompts that will queue while an upstream reads this one.
	QueuedBehind float64
	// FirstPlaceHitRate is a cache hit rate at the first-ranked upstreams of prompts, from 0 to 1: of the bytes that
	// this sidecar had not sent there, the share that was cached because other sidecars had sent it.
	FirstPlaceHitRate float64
	// Fetch is the expected time to fetch all data that the job needs, in seconds.
	Fetch float64
	// Service is the service time in seconds: how long a core takes for a job, as the median over the upstreams; 0 is
	// unknown.
	Service float64
}

// unknownService is the assumed service time in seconds while it is unknown.
const unknownService = 12

func (j *Job) service() float64 {
	if j.Service > 0 {
		return j.Service
	}
	return unknownService
}

// Rate returns how many jobs v completes per second when every core is busy. If v does not report it, it is estimated
// from the cores and the service time.
func (j *Job) Rate(v *View) float64 {
	if v.Rate > 0 {
		return v.Rate
	}
	return v.cores() / j.service()
}
