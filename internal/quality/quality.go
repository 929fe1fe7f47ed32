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
	"time"

	"example.org/pilotfish/internal/dispatch"
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
	return &Machine{start: now, hour: make(ring[period], steps), fleet: newScope(now)}
}

// Began counts a response that has begun. The modes cannot wait for its end, which may
// be hours away.
func (m *Machine) Began(now time.Time, j *dispatch.Job, c pool.Choice) {
	bound := j.FirstByte
	if !j.Deadline.IsZero() {
		bound = min(bound, j.Deadline.Sub(j.Arrived))
	}
	add := func(s *scope, from time.Time) {
		s.follow.add(sample{arrived: from.Sub(m.start), firstByte: now.Sub(from), bound: bound})
	}
	add(m.fleet, j.Arrived)
	if there := m.upstreams[c.Address]; there != nil {
		add(there, c.Claimed)
	}
}

// Ended counts a job that has ended, by the settings of that moment. What happened at an
// upstream that is not followed counts for the fleet alone.
func (m *Machine) Ended(now time.Time, s Settings, j *record.Job) {
	at, r := now.Sub(m.start), resultOf(j, s.Count500)
	if r == uncounted {
		return
	}
	m.hour.at(at).jobs[j.Facts.Priority].add(j, r)
	m.fleet.observe(at, r, j.Outcome)
	for i := range j.Attempts {
		there, known := m.upstreams[j.Attempts[i].Upstream]
		if r := resultAt(j, i, s.Count500); known && r != uncounted {
			there.observe(at, r, j.Outcome)
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
			there[address] = newScope(now)
		}
	}
	m.upstreams = there
	at := now.Sub(m.start)
	m.look(at, &o)
	judge := func(address string, s *scope) {
		from := s.Mode
		if to, cause := s.next(at); to != from {
			s.Mode, s.Since, s.Cause = to, now, cause
			changes = append(changes, Change{address, from, s.Status})
		}
	}
	judge("", m.fleet)
	parts := max(turns, (len(o.Upstreams)+mostJudged-1)/mostJudged)
	for i := int(max(0, at)/time.Second) % parts; i < len(o.Upstreams); i += parts {
		address := o.Upstreams[i].Address
		judge(address, there[address])
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
	if jobs, after, ok := v.Fleet.Trend.deadline(); ok && v.Fleet.Mode == Growing {
		v.Fleet.DeadlineJobs, v.Fleet.DeadlineSeconds = &jobs, &after
	}
	for _, n := range spans {
		v.Fleet.Windows = append(v.Fleet.Windows, m.window(at, n))
	}
	for i := range states {
		row := &v.Upstreams[i]
		row.State, row.Mode = states[i], Unknown
		if s := m.upstreams[row.Address]; s != nil {
			t := s.tally(at)
			_, row.MinuteJobs = t.bad()
			row.Mode, row.MinuteFailed, row.MinuteLost = s.Mode, t.results[failed], t.results[partial]+t.results[absent]
			s.data.last(at, spans[0], row.MinuteData.merge)
		}
	}
	return v
}

// Status is how jobs are served.
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
	Windows []Window `json:"windows"`
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
	// MinuteData is how many of those jobs found their data.
	MinuteData Finds `json:"minute_data"`
}
