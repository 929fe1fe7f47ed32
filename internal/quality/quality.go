// Package quality says how submitters are served: the key figures of their jobs over
// the last hour, the mode that the fleet and each upstream are in, and how many upstreams
// the fleet needs.
//
// It follows N. J. Turner's thesis: a job counts by its time to first byte, its time to
// last byte and its completeness (3.3), and a fleet is in one of three modes (4.5). At a
// low load every job is served alike. When more work comes than is done, the times to
// first byte rise from job to job. When they reach what submitters wait, jobs are lost.
//
// It is a machine: it owns no clock, lock or goroutine. Its memory does not grow with
// the number of jobs.
package quality

import (
	"maps"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Settings is what submitters are promised.
type Settings struct {
	// Count500 says whether a response with a status of 500 or more is a failed job. Set
	// it to false where such a status is a result like any other.
	Count500 bool `yaml:"count_500"`
}

// Default is the promise of an empty file.
func Default() Settings { return Settings{Count500: true} }

// Machine follows the jobs of one sidecar. It is not safe for concurrent use.
type Machine struct {
	settings  Settings
	start     time.Time
	hour      hour
	fleet     *scope
	upstreams map[string]*scope
	addresses []string // of upstreams, in order
	turn      int      // which part of the upstreams is judged next
}

// turns is in how many parts the upstreams are judged, one at each Advance: to judge 300
// takes some 15 ms.
const turns = 5

// New returns a machine that has seen no job.
func New(now time.Time, s Settings) *Machine {
	return &Machine{settings: s, start: now, hour: hour{make(ring[period], steps)}, fleet: newScope(), upstreams: map[string]*scope{}}
}

// Set replaces the settings. They count for the jobs from now on.
func (m *Machine) Set(s Settings) { m.settings = s }

// Began counts a response that has begun. The modes cannot wait for its end, which may
// be hours away.
func (m *Machine) Began(now time.Time, f FirstByte) {
	m.fleet.follow.add(sample{arrived: f.Arrived.Sub(m.start), firstByte: now.Sub(f.Arrived), bound: f.Bound})
	if there, ok := m.upstreams[f.Upstream]; ok {
		there.follow.add(sample{arrived: f.Claimed.Sub(m.start), firstByte: now.Sub(f.Claimed), bound: f.Bound})
	}
}

// Ended counts a job that has ended. What happened at an upstream that is not
// followed counts for the fleet alone.
func (m *Machine) Ended(now time.Time, j *record.Job) {
	at, r := now.Sub(m.start), resultOf(j, m.settings.Count500)
	if r == uncounted {
		return
	}
	m.hour.at(at).jobs[j.Facts.Priority].add(j, r)
	m.fleet.observe(at, r, j.Outcome)
	for i := range j.Attempts {
		there, known := m.upstreams[j.Attempts[i].Upstream]
		if r := resultAt(j, i, m.settings.Count500); known && r != uncounted {
			there.observe(at, r, j.Outcome)
		}
	}
}

// Change is a mode that was entered.
type Change struct {
	// Upstream is "" for the fleet.
	Upstream string
	From, To Mode
	Cause    string
	Trend    Trend
}

// Minor reports whether a change says only that there were enough jobs to judge by, or no
// longer.
func (c *Change) Minor() bool {
	return c.To == Unknown || c.From == Unknown && c.To == Flat
}

// Advance notes a moment, and judges the mode of the fleet and of a fifth of the upstreams
// anew. It returns the modes that changed. The shell calls it every second. What is known of
// upstreams that are gone is forgotten.
func (m *Machine) Advance(now time.Time, o Moment) (changes []Change) {
	m.follow(o.Upstreams)
	at := now.Sub(m.start)
	m.look(at, &o)
	judge := func(address string, s *scope) {
		from := s.mode
		to, cause := s.next(at)
		if to == from {
			return
		}
		s.mode, s.since, s.why = to, at, cause
		changes = append(changes, Change{Upstream: address, From: from, To: to, Cause: cause, Trend: s.trend})
	}
	judge("", m.fleet)
	m.turn = (m.turn + 1) % turns
	for i := m.turn; i < len(m.addresses); i += turns {
		judge(m.addresses[i], m.upstreams[m.addresses[i]])
	}
	return changes
}

// follow takes in which upstreams there are.
func (m *Machine) follow(states []pool.State) {
	there := make(map[string]*scope, len(states))
	for i := range states {
		address := states[i].Address
		if there[address] = m.upstreams[address]; there[address] == nil {
			there[address] = newScope()
		}
	}
	m.upstreams, m.addresses = there, slices.Sorted(maps.Keys(there))
}

// Status is the mode of the fleet.
type Status struct {
	// Mode is unknown, flat, growing or losing.
	Mode Mode `json:"mode"`
	// Since is when it was entered, and Cause says why, for people.
	Since time.Time `json:"since"`
	Cause string    `json:"cause,omitempty"`
	// Trend is how the times to first byte change, as last judged.
	Trend Trend `json:"trend"`
	// DeadlineJobs and DeadlineSeconds say in how many jobs, and in how much time, the
	// first job will have waited as long as it may, if times rise on. They are absent
	// unless the mode is growing.
	DeadlineJobs    *float64 `json:"deadline_in_jobs,omitempty"`
	DeadlineSeconds *float64 `json:"deadline_in_seconds,omitempty"`
	// Windows are the last 1, 5 and 60 minutes.
	Windows []Window `json:"windows,omitempty"`
}

// Status is the mode of the fleet, without windows.
func (m *Machine) Status() Status {
	s := Status{Mode: m.fleet.mode, Since: m.start.Add(m.fleet.since), Cause: m.fleet.why, Trend: m.fleet.trend}
	if jobs, after, ok := s.Trend.deadline(); ok && s.Mode == Growing {
		s.DeadlineJobs, s.DeadlineSeconds = &jobs, &after
	}
	return s
}

// Served is the mode of the fleet, and its key figures.
func (m *Machine) Served(now time.Time) Status {
	s := m.Status()
	for _, n := range spans {
		s.Windows = append(s.Windows, m.hour.window(now.Sub(m.start), n))
	}
	return s
}

// Upstream is one row: what the pool knows of an upstream, and how it serves jobs.
type Upstream struct {
	pool.State
	// Mode is unknown, flat, growing or losing.
	Mode Mode `json:"mode"`
	// MinuteJobs is how many jobs ended there in the last minute, MinuteFailed how many of
	// them with a status of 500 or more, and MinuteLost how many in part or without a response.
	MinuteJobs   uint64 `json:"minute_jobs"`
	MinuteFailed uint64 `json:"minute_failed"`
	MinuteLost   uint64 `json:"minute_lost"`
}

// Upstreams are the rows of upstreams in these states.
func (m *Machine) Upstreams(now time.Time, states []pool.State) []Upstream {
	rows := make([]Upstream, len(states))
	for i := range states {
		rows[i].State, rows[i].Mode = states[i], Unknown
		if s := m.upstreams[states[i].Address]; s != nil {
			t := s.tally(now.Sub(m.start))
			_, rows[i].MinuteJobs = t.bad()
			rows[i].Mode, rows[i].MinuteFailed, rows[i].MinuteLost = s.mode, t.results[failed], t.results[partial]+t.results[absent]
		}
	}
	return rows
}
