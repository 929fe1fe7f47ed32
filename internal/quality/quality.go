// Package quality says how submitters are served: the key figures of their jobs over
// the last minutes, and the mode that the fleet and each upstream are in.
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

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Settings is what submitters are promised.
type Settings struct {
	// FirstByte is how long the median job may take to its first byte in the worst
	// moment. The advice on capacity holds to it.
	FirstByte time.Duration `yaml:"first_byte"`
}

// Default is the promise of an empty file.
func Default() Settings { return Settings{FirstByte: 3 * time.Second} }

// Check refuses nonsense.
func (s Settings) Check(f *settings.Faults) { f.Positive("first_byte", s.FirstByte) }

// Machine follows the jobs of one sidecar. It is not safe for concurrent use.
type Machine struct {
	start     time.Time
	fleet     *scope
	upstreams map[string]*scope
	changes   []Change // the latest last
	turn      int      // which part of the upstreams is judged next
}

// turns is in how many parts the upstreams are judged, one at each Advance: 300 take
// some 20 ms.
const turns = 5

// Change is a mode that was entered.
type Change struct {
	// At is when.
	At time.Time `json:"at"`
	// Upstream is "" for the fleet.
	Upstream string `json:"upstream,omitempty"`
	// From is the mode that was left, and To the one that was entered.
	From Mode `json:"from"`
	To   Mode `json:"to"`
	// Cause says why, for people.
	Cause string `json:"cause"`
	// Trend is how the times to first byte changed at that time.
	Trend Trend `json:"trend"`
}

// maxChanges is how many changes are kept.
const maxChanges = 100

// New returns a machine that has seen no job.
func New(now time.Time) *Machine {
	return &Machine{start: now, fleet: newScope(), upstreams: map[string]*scope{}}
}

// Follow says which upstreams there are. What is known of others is forgotten.
func (m *Machine) Follow(addresses []string) {
	kept := make(map[string]*scope, len(addresses))
	for _, a := range addresses {
		if kept[a] = m.upstreams[a]; kept[a] == nil {
			kept[a] = newScope()
		}
	}
	m.upstreams = kept
}

// Began counts a response that has begun. The modes cannot wait for its end, which may
// be hours away.
func (m *Machine) Began(now time.Time, f FirstByte) {
	m.fleet.trend.add(sample{arrived: f.Arrived.Sub(m.start), firstByte: now.Sub(f.Arrived), bound: f.Bound})
	if there, ok := m.upstreams[f.Upstream]; ok {
		there.trend.add(sample{arrived: f.Claimed.Sub(m.start), firstByte: now.Sub(f.Claimed), bound: f.Bound})
	}
}

// Observe counts a job that has ended. What happened at an upstream that is not
// followed counts for the fleet alone.
func (m *Machine) Observe(now time.Time, j *Job) {
	at := now.Sub(m.start)
	if !j.counts() {
		return
	}
	m.fleet.observe(at, j)
	for i := range j.Attempts {
		scope, ok := m.upstreams[j.Attempts[i].Upstream]
		if !ok {
			continue
		}
		if there, ok := j.at(i); ok {
			scope.observe(at, &there)
		}
	}
}

// Advance judges the mode of the fleet and of a fifth of the upstreams anew, and returns
// those that changed. The shell calls it every second.
func (m *Machine) Advance(now time.Time) []Change {
	var changes []Change
	at := now.Sub(m.start)
	advance := func(address string, s *scope) {
		from := s.state.mode
		to, cause := s.state.next(at, &s.trend, s.minute(at))
		if to == from {
			return
		}
		s.state.mode, s.state.since = to, at
		changes = append(changes, Change{At: now, Upstream: address, From: from, To: to, Cause: cause, Trend: s.state.trend})
	}
	advance("", m.fleet)
	m.turn = (m.turn + 1) % turns
	for i, address := range m.Upstreams() {
		if i%turns == m.turn {
			advance(address, m.upstreams[address])
		}
	}
	m.changes = append(m.changes, changes...)
	m.changes = m.changes[max(0, len(m.changes)-maxChanges):]
	return changes
}

// Upstreams are the addresses that are followed, in order.
func (m *Machine) Upstreams() []string { return slices.Sorted(maps.Keys(m.upstreams)) }

// Minute is how many jobs ended in the last minute at an upstream, and how many of them
// were partial or absent there.
func (m *Machine) Minute(now time.Time, address string) (jobs, lost uint64) {
	s := m.scope(address)
	if s == nil {
		return 0, 0
	}
	minute := s.minute(now.Sub(m.start))
	return minute.jobs(), minute.jobs() - minute.counted[intake.Complete]
}

// Changes are the modes entered last, the latest last.
func (m *Machine) Changes() []Change { return append([]Change{}, m.changes...) }

// Status is the mode of the fleet or of one upstream.
type Status struct {
	// Mode is unknown, flat, growing or losing.
	Mode Mode `json:"mode"`
	// Since is when it was entered; zero is the start.
	Since time.Time `json:"since"`
	// Trend is how the times to first byte change, as last judged.
	Trend Trend `json:"trend"`
	// DeadlineJobs and DeadlineSeconds say in how many jobs, and in how much time, the
	// first job will have waited as long as it may, if times rise on. They are absent
	// unless the mode is growing.
	DeadlineJobs    *float64 `json:"deadline_in_jobs,omitempty"`
	DeadlineSeconds *float64 `json:"deadline_in_seconds,omitempty"`
}

// Status is the mode of the upstream at an address, or of the fleet for "".
func (m *Machine) Status(address string) Status {
	s := m.scope(address)
	if s == nil {
		return Status{Since: m.start}
	}
	status := Status{Mode: s.state.mode, Since: m.start.Add(s.state.since), Trend: s.state.trend}
	if jobs, after, ok := s.state.trend.deadline(); ok && status.Mode == Growing {
		status.DeadlineJobs, status.DeadlineSeconds = &jobs, &after
	}
	return status
}

// Window is the key figures of the jobs that ended in some time until now.
type Window struct {
	// Seconds is how long the window is.
	Seconds float64 `json:"seconds"`
	// Covered is how much of that the figures are of: the present stretch has only
	// begun, or the machine is younger.
	Covered float64 `json:"covered_seconds"`
	// High, Low and All are the figures of the jobs of each priority, and of both.
	High Figures `json:"high"`
	Low  Figures `json:"low"`
	All  Figures `json:"all"`
}

// Served is how one upstream, or the fleet, served its jobs.
type Served struct {
	// Upstream is "" for the fleet.
	Upstream string `json:"upstream,omitempty"`
	Status
	// Windows are the last 1, 5 and 60 minutes.
	Windows []Window `json:"windows"`
}

// Summary is all that a machine knows at one instant.
type Summary struct {
	// At is the instant.
	At time.Time `json:"at"`
	// Fleet is how all jobs were served, and Upstreams how each upstream served its own.
	Fleet     Served   `json:"fleet"`
	Upstreams []Served `json:"upstreams"`
	// Changes are the modes entered last, the latest last.
	Changes []Change `json:"changes"`
}

// Served is how the upstream at an address, or the fleet for "", served its jobs.
func (m *Machine) Served(now time.Time, address string) Served {
	return Served{Upstream: address, Status: m.Status(address), Windows: m.windows(now, address)}
}

// windows are the figures of the last 1, 5 and 60 minutes at an upstream, or at the
// fleet for "".
func (m *Machine) windows(now time.Time, address string) []Window {
	s := m.scope(address)
	if s == nil {
		return nil
	}
	at := now.Sub(m.start)
	windows := make([]Window, len(spans))
	for i := range windows {
		low, high := &s.windows[selection.Low][i], &s.windows[selection.High][i]
		windows[i] = Window{
			Seconds: low.length().Seconds(), Covered: low.covered(at).Seconds(),
			High: figures(at, high), Low: figures(at, low), All: figures(at, high, low),
		}
	}
	return windows
}

func (m *Machine) scope(address string) *scope {
	if address == "" {
		return m.fleet
	}
	return m.upstreams[address]
}

// scope is what is known of the fleet, or of one upstream.
type scope struct {
	windows [selection.Priorities][len(spans)]window
	trend   trend
	state   state
}

// spans are the windows that are kept, the shortest first. Each width divides the next.
var spans = [...]struct {
	width time.Duration
	slots int
}{{10 * time.Second, 6}, {50 * time.Second, 6}, {10 * time.Minute, 6}}

func newScope() *scope {
	s := new(scope)
	for p := range s.windows {
		for i, span := range spans {
			s.windows[p][i] = newWindow(span.width, span.slots)
			if i > 0 {
				s.windows[p][i-1].before(&s.windows[p][i])
			}
		}
	}
	return s
}

func (s *scope) observe(now time.Duration, j *Job) {
	s.windows[j.Priority][0].add(now, j)
	s.state.note(now, j)
}

// minute is what was counted in the last one, without its times.
func (s *scope) minute(now time.Duration) *slot {
	var all slot
	for p := range s.windows {
		s.windows[p][0].each(now, all.count)
	}
	return &all
}
