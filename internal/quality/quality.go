// Package quality says how submitters are served: the key figures of their jobs over
// the last hour, the mode that the fleet and each upstream are in, and how many upstreams
// the fleet needs.
//
// It follows N. J. Turner's thesis: a job counts by its time to first byte, its time to
// last byte and its completeness (3.3), and a fleet is in one of three modes (4.5). It is
// steady at a low load. When more work arrives than is done, the queue grows, and the times to
// first byte rise from job to job. When they reach the jobs' timeouts, jobs fail.
//
// It is a machine: it owns no clock, lock or goroutine. Its memory does not grow with
// the number of jobs.
package quality

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Settings is what submitters are promised.
type Settings struct {
	// Count500 says whether a response with a status of 500 or more is a failed job. Set
	// it to false where such a status is a result like any other.
	Count500 bool `yaml:"count_500"`
	// Target is the wait that the fleet should keep: the admin port and a metric report how many upstreams would.
	Target Target `yaml:"target"`
	// UpstreamPrice is what an upstream costs per hour, in any currency. The admin port then reports the cost of a job.
	// 0 is not known.
	UpstreamPrice float64 `yaml:"upstream_price"`
}

// Target is how long jobs may wait.
type Target struct {
	// WaitP95 is the wait for a core that 95 of 100 jobs should not exceed in the busiest minute of the last hour; 0 is
	// no target.
	WaitP95 time.Duration `yaml:"wait_p95"`
}

// Check reports what cannot be used.
func (s Settings) Check(f *settings.Faults) {
	f.In("target").NotNegative("wait_p95", s.Target.WaitP95)
	f.Between("upstream_price", s.UpstreamPrice, 0, 1e9)
}

// Default is the promise of an empty file.
func Default() Settings { return Settings{Count500: true} }

// Machine follows the jobs of one sidecar. It is not safe for concurrent use.
type Machine struct {
	start     time.Time
	hour      ring[period]
	fleet     *scope
	upstreams map[string]*scope // by address
}

// Each second a part of the upstreams is judged: one of turns parts, or of more where that part would exceed mostJudged
// upstreams. Jobs that end wait while that happens, and to judge 300 takes some 15 ms.
const turns, mostJudged = 5, 100

// New returns a machine that has seen no job.
func New(now time.Time) *Machine {
	return &Machine{start: now, hour: make(ring[period], steps), fleet: newScope(now, JobsFail)}
}

// Began counts a response that has begun, with its load hint if there is one. The modes cannot wait for its end,
// which may be hours away.
func (m *Machine) Began(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint) {
	x := sample{bound: j.FirstByte, patience: j.Patience}
	if !j.Deadline.IsZero() {
		x.bound = min(x.bound, j.Deadline.Sub(j.Arrived))
	}
	if j.Queue > 0 && hint != nil {
		x.wait = max(0, hint.Waited) // such an upstream gives the job up at its queue timeout
	}
	if there := m.upstreams[c.Address]; there != nil {
		there.follow.add(x.from(c.Claimed.Sub(m.start), now.Sub(c.Claimed)))
	}
	x.wait += c.Claimed.Sub(j.Arrived)
	m.fleet.follow.add(x.from(j.Arrived.Sub(m.start), now.Sub(j.Arrived)))
}

// Ended counts a job that has ended, by the settings of that moment. What happened at an
// upstream that is not followed counts for the fleet alone.
func (m *Machine) Ended(now time.Time, s Settings, j *record.Job) {
	at, r := now.Sub(m.start), resultOf(j, s.Count500)
	if r == uncounted {
		return
	}
	m.hour.at(at).jobs[j.Facts.Priority].add(j, r)
	m.fleet.observe(at, r, uint8(j.Outcome))
	for i := range j.Attempts {
		there, known := m.upstreams[j.Attempts[i].Upstream]
		if r := resultAt(j, i, s.Count500); known && r != uncounted {
			there.observe(at, r, uint8(j.Attempts[i].Outcome))
			if i == len(j.Attempts)-1 {
				there.data.at(at).add(j)
			}
		}
	}
}

// Change is a mode that was entered, and the one before.
type Change struct {
	Upstream string // "" for the fleet
	From     Mode
	Status
}

// Advance notes a moment, and judges the mode of the fleet and of a part of the upstreams
// anew. It returns the modes that changed. The shell calls it every second. What is known of
// upstreams that are gone is forgotten.
func (m *Machine) Advance(now time.Time, o Moment) (changes []Change) {
	there := make(map[string]*scope, len(o.Upstreams))
	for i := range o.Upstreams {
		address := o.Upstreams[i].Address
		if there[address] = m.upstreams[address]; there[address] == nil {
			there[address] = newScope(now, AttemptsFail)
		}
	}
	m.upstreams = there
	at := now.Sub(m.start)
	m.look(at, &o)
	judge := func(address string, s *scope, l load) {
		from := s.Mode
		if to, cause := s.next(at, l); to != from {
			s.Mode, s.Since, s.Cause = to, now, cause
			changes = append(changes, Change{address, from, s.Status})
		}
	}
	judge("", m.fleet, o.load())
	parts := max(turns, (len(o.Upstreams)+mostJudged-1)/mostJudged)
	for i := int(max(0, at)/time.Second) % parts; i < len(o.Upstreams); i += parts {
		address := o.Upstreams[i].Address
		judge(address, there[address], loadOf(&o.Upstreams[i]))
	}
	return changes
}

// View is how the fleet is at one moment, and how it serves jobs.
type View struct {
	// Panic is set while breakers are ignored because every one is open.
	Panic bool `json:"panic,omitempty"`
	// Fleet is how all jobs were served, and Upstreams how each upstream is.
	Fleet     Status     `json:"fleet"`
	Upstreams []Upstream `json:"upstreams"`
	// Capacity is what the fleet can do and needs; absent while that is not known.
	Capacity *Advice `json:"capacity,omitempty"`
}

// Eligible is how many upstreams may be picked.
func (v *View) Eligible() (n int) {
	for i := range v.Upstreams {
		if v.Upstreams[i].Eligible {
			n++
		}
	}
	return n
}

// View is how the upstreams in these states serve jobs.
func (m *Machine) View(now time.Time, states []pool.State) View {
	at := now.Sub(m.start)
	v := View{Panic: pool.Panic(states), Fleet: m.fleet.Status, Upstreams: make([]Upstream, len(states)), Capacity: m.advice(now, states)}
	if jobs, after, ok := v.Fleet.Trend.deadline(); ok && v.Fleet.Mode == QueueGrows {
		v.Fleet.DeadlineJobs, v.Fleet.DeadlineSeconds = &jobs, &after
	}
	if v.Fleet.Text = v.Fleet.Mode.Text(); v.Panic {
		v.Fleet.Text = v.Fleet.Text + "; " + Panic
	}
	for _, n := range spans {
		v.Fleet.Windows = append(v.Fleet.Windows, m.window(at, n))
	}
	for i := range states {
		row := &v.Upstreams[i]
		row.State, row.Mode = states[i], Unknown
		if s := m.upstreams[row.Address]; s != nil {
			t := s.tally(at)
			bad, all := t.bad()
			row.Mode, row.MinuteAttempts, row.MinuteFailed = s.Mode, all+t.results[refused], bad+t.results[refused]
			s.data.last(at, spans[0], row.MinuteData.merge)
		}
	}
	return v
}

// Status is how jobs are served.
type Status struct {
	// Mode is "unknown", "steady", "queue grows" or "jobs fail".
	Mode Mode `json:"mode"`
	// Text says what that means.
	Text string `json:"text"`
	// Since is when it was entered, and Cause says why, as things were at that moment.
	Since time.Time `json:"since"`
	Cause string    `json:"cause,omitempty"`
	// Trend is how the times to first byte change, as last judged.
	Trend Trend `json:"trend"`
	// DeadlineJobs and DeadlineSeconds say after how many more jobs, and in how much time, the first job fails
	// because it reaches one of its timeouts, if times rise on. They are absent unless the queue grows and that
	// is within an hour.
	DeadlineJobs    *float64 `json:"deadline_in_jobs,omitempty"`
	DeadlineSeconds *float64 `json:"deadline_in_seconds,omitempty"`
	// Windows are the last 1, 5 and 60 minutes.
	Windows []Window `json:"windows"`
}

// Upstream is one row: what the pool knows of an upstream, and how it serves jobs.
type Upstream struct {
	pool.State
	// Mode is "unknown", "steady", "queue grows" or "attempts fail".
	Mode Mode `json:"mode"`
	// MinuteAttempts is how many attempts ended there in the last minute, and MinuteFailed how many of them without
	// a whole response of a status below 500. Another upstream may have answered those jobs.
	MinuteAttempts uint64 `json:"minute_attempts"`
	MinuteFailed   uint64 `json:"minute_failed_attempts"`
	// MinuteData is how many of those jobs found their data.
	MinuteData Finds `json:"minute_data"`
}
