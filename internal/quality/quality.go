// Package quality measures the quality of service: the key figures of jobs over the last hour,
// the mode of the fleet and of each upstream, and how many upstreams the fleet needs.
//
// It follows N. J. Turner's thesis. The key figures of a job are its time to first byte, its time to
// last byte and its completeness (3.3). A fleet is in one of three modes (4.5). At a low load it is
// steady. When more work arrives than is completed, the queue grows: times to first byte rise from job
// to job. When they reach the jobs' timeouts, jobs fail.
//
// It has no clock, lock or goroutine. Its memory does not grow with the number of jobs.
package quality

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Settings configure what counts as failed, and the goals of the fleet.
type Settings struct {
	// Count500 counts a response with a status of 500 or more as a failed job. Set
	// it to false if such a status is a normal result.
	Count500 bool `yaml:"count_500"`
	// Target is the longest acceptable wait. The admin port and a metric report how many upstreams would keep it.
	Target Target `yaml:"target"`
	// UpstreamPrice is the price of an upstream per hour, in any currency. The admin port then reports the cost of a job,
	// and of each project.
	// 0 is unknown.
	UpstreamPrice float64 `yaml:"upstream_price"`
}

// Target is the longest acceptable wait of jobs.
type Target struct {
	// WaitP95 is the 95th percentile of the wait for a core, in the busiest minute of the last hour. 0 is no target.
	WaitP95 time.Duration `yaml:"wait_p95"`
}

// Check adds invalid values to f.
func (s Settings) Check(f *settings.Faults) {
	f.In("target").NotNegative("wait_p95", s.Target.WaitP95)
	f.Between("upstream_price", s.UpstreamPrice, 0, 1e9)
}

// Default returns the settings of an empty file.
func Default() Settings { return Settings{Count500: true} }

// Machine measures the jobs of one sidecar. The caller must hold a lock around all methods.
type Machine struct {
	// Pause is called between the parts of the work of Advance and View. It must call do; the default only calls do.
	// It can release the caller's lock while do runs, because do does not access the Machine. Other methods can be
	// called in that time, except a second Advance during an Advance.
	Pause func(do func())

	start     time.Time
	hour      ring[period]
	fleet     *scope
	upstreams map[string]*scope // by address
	costs     costs
}

// viewedAtOnce is the number of upstreams that View adds between two pauses.
const viewedAtOnce = 500

// Each second, the modes of 1/turns of the upstreams are updated, but of at most mostJudged. Each update takes up to
// 0.3 ms.
const turns, mostJudged = 5, 100

// New returns a machine without jobs.
func New(now time.Time) *Machine {
	return &Machine{Pause: func(do func()) { do() }, start: now, hour: make(ring[period], steps), fleet: newScope(now, JobsFail)}
}

// Began counts a response that has started, with its load hint if it has one. The modes cannot wait for the end of
// the response, which can be hours later.
func (m *Machine) Began(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint) {
	x := sample{bound: j.FirstByte, patience: j.QueueTimeout}
	if !j.Deadline.IsZero() {
		x.bound = min(x.bound, j.Deadline.Sub(j.Arrived))
	}
	if j.Queue > 0 && hint != nil {
		x.wait = max(0, hint.Waited) // the upstream aborts the job if this reaches its queue timeout
	}
	if there := m.upstreams[c.Address]; there != nil {
		there.follow.add(x.from(c.Claimed.Sub(m.start), now.Sub(c.Claimed)))
	}
	x.wait += c.Claimed.Sub(j.Arrived)
	m.fleet.follow.add(x.from(j.Arrived.Sub(m.start), now.Sub(j.Arrived)))
}

// Ended counts an ended job, by the current settings. An attempt at an unknown upstream counts only for
// the fleet.
func (m *Machine) Ended(now time.Time, s Settings, j *record.Job) {
	at, r := now.Sub(m.start), resultOf(j, s.Count500)
	if r == uncounted {
		return
	}
	m.hour.at(at).jobs[j.Facts.Priority].add(j, r)
	m.costs.add(at, j)
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

// Change is a change of a mode.
type Change struct {
	Upstream string // "" for the fleet
	From     Mode
	Status
}

// Advance records the current state, and updates the mode of the fleet and of a part of the upstreams.
// It returns the modes that changed. The caller calls it every second. Removed upstreams are
// forgotten.
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
	m.observe(at, &o)
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
		m.Pause(func() {})
		address := o.Upstreams[i].Address
		judge(address, there[address], loadOf(&o.Upstreams[i]))
	}
	return changes
}

// View is the state of the fleet and its quality of service at one moment.
type View struct {
	// Panic is set in panic mode: the breakers of all upstreams that take new jobs are open, so breakers are ignored. It is also
	// set if this is true only of the upstreams for jobs that are not heavy.
	Panic bool `json:"panic,omitempty"`
	// Fleet is the quality of service of all jobs, Upstreams the state of each upstream.
	Fleet     Status     `json:"fleet"`
	Upstreams []Upstream `json:"upstreams"`
	// Capacity is the fleet's capacity, and the number of upstreams that it needs; absent while unknown.
	Capacity *Advice `json:"capacity,omitempty"`
}

// Eligible returns the number of eligible upstreams.
func (v *View) Eligible() (n int) {
	for i := range v.Upstreams {
		if v.Upstreams[i].Eligible {
			n++
		}
	}
	return n
}

// View returns the quality of service, given the states of the upstreams.
func (m *Machine) View(now time.Time, states []pool.State) View {
	at := now.Sub(m.start)
	v := View{Panic: pool.InPanic(states), Fleet: m.fleet.Status, Capacity: m.advice(now, states)}
	if jobs, after, ok := v.Fleet.Trend.deadline(); ok && v.Fleet.Mode == QueueGrows {
		v.Fleet.DeadlineJobs, v.Fleet.DeadlineSeconds = &jobs, &after
	}
	if v.Fleet.Text = v.Fleet.Mode.Text(); v.Panic {
		v.Fleet.Text = v.Fleet.Text + "; " + Panic
	}
	for _, n := range spans {
		v.Fleet.Windows = append(v.Fleet.Windows, m.window(at, n))
	}
	m.Pause(func() { v.Upstreams = make([]Upstream, len(states)) }) // can wait for the garbage collector
	for i := range states {
		if i%viewedAtOnce == viewedAtOnce-1 {
			m.Pause(func() {})
		}
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

// Status is the quality of service of all jobs.
type Status struct {
	// Mode is "unknown", "steady", "queue grows" or "jobs fail".
	Mode Mode `json:"mode"`
	// Text explains the mode.
	Text string `json:"text"`
	// Since is when the mode was entered. Cause is the reason, with the figures of that moment.
	Since time.Time `json:"since"`
	Cause string    `json:"cause,omitempty"`
	// Trend is the trend of the times to first byte at the last update.
	Trend Trend `json:"trend"`
	// DeadlineJobs and DeadlineSeconds are the number of jobs, and the time, until the first job reaches one of its
	// timeouts at the current trend. They are absent unless the queue grows and the time is within an hour.
	DeadlineJobs    *float64 `json:"deadline_in_jobs,omitempty"`
	DeadlineSeconds *float64 `json:"deadline_in_seconds,omitempty"`
	// Windows are the last 1, 5 and 60 minutes.
	Windows []Window `json:"windows"`
}

// Upstream is the state of one upstream and its quality of service.
type Upstream struct {
	pool.State
	// Mode is "unknown", "steady", "queue grows" or "attempts fail".
	Mode Mode `json:"mode"`
	// MinuteAttempts is the number of attempts that ended there in the last minute. MinuteFailed is how many of them
	// had no complete response with a status below 500. Those jobs may have succeeded at another upstream.
	MinuteAttempts uint64 `json:"minute_attempts"`
	MinuteFailed   uint64 `json:"minute_failed_attempts"`
	// MinuteData counts the cache hits of the last minute.
	MinuteData CacheHits `json:"minute_data"`
}
