package sim

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Result is how one job ended, as its submitter saw it.
type Result struct {
	Number   int64 // its line in the trace
	Project  uint64
	Priority selection.Priority
	Prefetch bool
	Arrived  time.Duration
	// Wait is from the job's arrival at the sidecar to the start of its
	// execution, so that time in the sidecar's queue is not hidden; Run is
	// from there to its end. A job without a result, because it was Lost, Unserved,
	// Failed or Shed, has waited at least as long as it may wait: otherwise an upstream
	// that fails at once would look like the best.
	Wait, Run time.Duration
	// FirstByte and LastByte are from the job's arrival to the first byte of its
	// answer and to its end, as its submitter sees them (N. J. Turner's thesis, 3.3);
	// the first is negative where no answer began. Completeness says how much came.
	FirstByte, LastByte time.Duration
	Completeness        intake.Completeness
	// Work is the core-time of all its joblets, with nothing cached or shared:
	// its response time if no other job were about.
	Work     time.Duration
	Server   int // index; negative when it reached none
	Attempts int
	// Fetched: it caused a fetch of its project's data, which takes Load on a core of normal
	// speed. Its sidecar expected it to cost Expected.
	Fetched        bool
	Load, Expected time.Duration
	Cache          selection.Cache
	Outcome        Outcome
}

// Duration is the job's response time.
func (r *Result) Duration() time.Duration { return r.Wait + r.Run }

// Outcome is how a job ended in a simulation.
type Outcome uint8

// The outcomes of a simulated job.
const (
	Done     Outcome = iota
	Expired          // its own bound on waiting passed
	Overrun          // its own bound on running passed
	Lost             // its upstream went away and no attempt was left
	Unserved         // no upstream could be reached
	Failed           // the answer was an error, or empty
	Shed             // refused by its sidecar
)

// String returns the outcome's word in tables.
func (o Outcome) String() string {
	return [...]string{"done", "expired", "overrun", "lost", "unserved", "failed", "shed"}[o]
}

// Sample is the fleet at one instant.
type Sample struct {
	At time.Duration
	// All are by server; Level is the first sidecar's overload level, 1 for a
	// server that it does not know.
	Stalled, Busy []int
	Up            []bool
	Level         []float64
	// Queued is the jobs that wait in the sidecars.
	Queued int
}

// Totals are counted over a whole run.
type Totals struct {
	Length             time.Duration // up to the last job's end, without the warm-up
	Arrivals, Ended    int
	Fetches, Evictions int
	CoreSeconds        float64
	Reports            int
	InFlight, Waiting  int // left at the end
	Stops              int // of servers
}

// sampler takes the figures over time.
type sampler struct{}

func (sampler) happen(w *world) {
	if w.over() {
		return
	}
	sample := Sample{At: w.now}
	for _, s := range w.servers {
		sample.Stalled = append(sample.Stalled, len(s.queue))
		sample.Busy = append(sample.Busy, s.busy)
		sample.Up = append(sample.Up, s.up)
		sample.Level = append(sample.Level, 1)
	}
	for _, u := range w.sidecars[0].pool.States(w.time(w.now)) {
		sample.Level[w.byName[u.Address]] = u.Level
	}
	for _, s := range w.sidecars {
		sample.Queued += s.dispatch.Waiting()
	}
	w.cfg.Sample(&sample)
	w.events.add(w.now+w.cfg.SampleEvery, rankReport, sampler{})
}
