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
	// ID is UpstreamID of the upstream's address.
	ID uint64
	// Weight is the upstream's share of the load as discovery gives it; 1 is normal.
	Weight float64
	// Cores is how many joblets the upstream runs at once; 0 is unknown.
	Cores float64

	// Cache is the project's cache status here. Warm is the expected share of the bytes that the
	// job needs that will be cached here when it starts: it can need several pieces of data, or
	// share only a prefix of its prompt with earlier jobs.
	Cache Cache
	Warm  float64

	// InFlight is this sidecar's jobs there.
	InFlight float64
	// Assigned is the thesis's "in progress": the last reported count plus
	// everything this sidecar assigned since, finished or not.
	Assigned float64
	// Jobs estimates the jobs there now: the reported ones, plus this sidecar's
	// open claims since the report, less its older claims that have ended since.
	// Coreless is the number of these jobs that wait for another job's result, such as a fetch:
	// they hold no core now, and are assumed to need none before this job does. It is 0 if jobs of
	// the same project from this sidecar wait here: when the fetch ends, all of them need cores at
	// the same time as this job.
	Jobs, Coreless float64
	// Overtaken is how many of these jobs wait for a core and would start after this one: a high job overtakes
	// low ones. It is 0 where the upstream does not report priorities.
	Overtaken float64
	// Fresh says that there is a fresh report on the load.
	Fresh bool

	// PrefillWait is the time until the upstream starts to read another prompt.
	PrefillWait float64

	// Rate is jobs completed per second when every core is busy; 0 is unknown.
	Rate float64
	// Latency is the peak-sensitive moving average of the time to first byte.
	Latency float64

	// Left is how long it will stay up; 0 if no stop is announced.
	Left float64
}

// UpstreamID is the hash of an upstream's address, which is the same in every sidecar.
func UpstreamID(address string) uint64 { return hash.Text(address) }

// leastWeight replaces a weight of 0 or less, so that even such an upstream's
// load is a number.
const leastWeight = 1e-9

// OwnLoad is this sidecar's jobs there for each unit of weight.
func (v *View) OwnLoad() float64 { return v.InFlight / max(v.Weight, leastWeight) }

// unknownCores is the assumed number of cores of an upstream whose number is unknown.
const unknownCores = 8

// cores is the number of cores, known or not.
func (v *View) cores() float64 {
	if v.Cores > 0 {
		return v.Cores
	}
	return unknownCores
}
