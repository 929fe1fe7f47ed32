package selection

import (
	"example.org/pilotfish/internal/hash"
)

// Cache says whether an upstream is believed to hold a project's data (the
// thesis, 9.2.3). A larger value is better.
type Cache uint8

// The cache statuses, in ascending order of preference.
const (
	NotCached Cache = iota
	AssumedCached
	Cached
)

// String returns the word that metrics and logs use.
func (c Cache) String() string {
	switch c {
	case Cached:
		return "cached"
	case AssumedCached:
		return "assumed"
	}
	return "none"
}

// View is a policy's input for one eligible upstream: plain numbers, computed
// for one job at one instant. Times are in seconds.
type View struct {
	// ID is the result of UpstreamID for the upstream's address.
	ID uint64
	// Weight is the upstream's relative share of the load, from discovery; 1 is normal.
	Weight float64
	// Cores is how many joblets the upstream runs at once; 0 is unknown.
	Cores float64

	// Cache is the project's cache status at the upstream. Warm is the share of the job's data, by bytes, that is
	// expected to be cached when the job starts. It can be between 0 and 1 if a job needs several pieces of data, or
	// shares a prefix of its prompt with earlier jobs.
	Cache Cache
	Warm  float64

	// InFlight is the number of this sidecar's jobs at the upstream.
	InFlight float64
	// Assigned is what the thesis calls "in progress": the last reported number of jobs plus all jobs that this sidecar
	// has assigned since, finished or not.
	Assigned float64
	// Jobs is the estimated number of jobs at the upstream now: the reported number, plus this sidecar's open claims
	// since the report, minus its older claims that have ended since. BlockedJobs is how many of these jobs wait for
	// another job's result, such as a fetch. They hold no core now, and are assumed to need none before this job does.
	// It is 0 if jobs of the same project from this sidecar wait there: when the fetch ends, all of them need cores at
	// the same time as this job.
	Jobs, BlockedJobs float64
	// Overtaken is how many of these jobs wait for a core and would start after this one, because it has high priority
	// and they have low priority. It is 0 if the upstream does not report priorities.
	Overtaken float64
	// Fresh is set if there is a fresh report of the load.
	Fresh bool

	// PrefillWait is the time until the upstream starts to read another prompt.
	PrefillWait float64

	// Rate is jobs completed per second when every core is busy; 0 is unknown.
	Rate float64
	// Latency is a moving average of the time to first byte that rises to a peak at once and falls slowly.
	Latency float64

	// UntilStop is how long the upstream will stay up; 0 if no stop is announced.
	UntilStop float64
}

// UpstreamID is the hash of an upstream's address, which is the same in every sidecar.
func UpstreamID(address string) uint64 { return hash.Text(address) }

// leastWeight replaces weights of 0 or less, to avoid a division by zero.
const leastWeight = 1e-9

// OwnLoad returns the number of this sidecar's jobs at the upstream per unit of weight.
func (v *View) OwnLoad() float64 { return v.InFlight / max(v.Weight, leastWeight) }

// unknownCores is the assumed number of cores of an upstream whose number is unknown.
const unknownCores = 8

// cores returns the number of cores, or unknownCores.
func (v *View) cores() float64 {
	if v.Cores > 0 {
		return v.Cores
	}
	return unknownCores
}
