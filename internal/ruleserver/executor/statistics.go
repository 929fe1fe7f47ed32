package executor

import "time"

// JobletRecord is the record of an ended joblet (the thesis, 3.4).
type JobletRecord struct {
	Key   Key
	Queue time.Duration // from when it was ready to its start
	Run   time.Duration
	Cores int
	Bytes int64 // of its result
	Jobs  int   // number of jobs that still needed it at its end
	Err   error
}

// Statistics count the joblets of one kind.
type Statistics struct {
	Executed   int // joblets that ended
	Queue, Run time.Duration
	Cached     int // executions saved, because the result was in the cache
	Joined     int // executions saved, because the joblet was waiting or running for another job
}

// AllStatistics holds the statistics of each kind of joblet, and of the cache.
type AllStatistics struct {
	Kinds     [kinds]Statistics
	Evictions uint64 // evicted results
	Bytes     int64  // of the cached results
}

// skip counts the joblets of a chain that a job does not run because the result of the last one exists.
func (s *AllStatistics) skip(chain []Joblet) {
	for _, joblet := range chain {
		s.Kinds[joblet.Key.Kind].Cached++
	}
}

func (s *AllStatistics) add(r JobletRecord) {
	of := &s.Kinds[r.Key.Kind]
	of.Executed++
	of.Queue += r.Queue
	of.Run += r.Run
}
