package main

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

const (
	shownProjects = 20
	shownFailures = 50
	shownChanges  = 20
	// maxShown bounds the text of a failure, in bytes.
	maxShown = 500
)

// console gathers what the admin port's page shows.
type console struct {
	side    *sidecar
	started time.Time

	mu       sync.Mutex
	history  quality.History
	load     capacity.Recorder
	projects quality.Projects
	failures []admin.Failure // the latest last
	unread   admin.Unread
}

func newConsole(side *sidecar) *console { return &console{side: side, started: time.Now()} }

// ended notes a job that has ended.
func (c *console) ended(now time.Time, r *record.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.projects.Note(now, r.Facts.Key, r.Facts.Project, answeredBy(r))
	if r.PassedUnread() {
		c.unread = admin.Unread{Jobs: c.unread.Jobs + 1, At: now, Why: r.Unread}
	}
	if r.Outcome == intake.Answered || r.Outcome == intake.Gone {
		return
	}
	c.failures = append(c.failures, failure(now, r))
	c.failures = c.failures[max(0, len(c.failures)-shownFailures):]
}

// answeredBy is the upstream that answered a job; "" where none did.
func answeredBy(r *record.Job) string {
	if n := len(r.Attempts); n > 0 && r.Outcome == intake.Answered {
		return r.Attempts[n-1].Upstream
	}
	return ""
}

// busiest are the projects that had most jobs lately: of all, or at one upstream.
func (c *console) busiest(now time.Time, upstream string, n int) []quality.Busy {
	c.mu.Lock()
	counts := c.projects.Counts(now, upstream)
	c.mu.Unlock() // every job takes it at its end, and to sort many projects takes long
	return counts.Top(n)
}

func failure(now time.Time, r *record.Job) admin.Failure {
	f := admin.Failure{
		At: now, ID: r.ID, Session: r.Facts.Session.String(), Project: r.Facts.Project.String(),
		Priority: r.Facts.Priority.String(), Outcome: r.Outcome.String(), Status: r.Status, Reason: r.Reason,
		Seconds: r.Total.Seconds(), Upstreams: []string{},
	}
	if r.Err != nil {
		text := r.Err.Error()
		f.Error = text[:min(len(text), maxShown)]
	}
	for i := range r.Attempts {
		f.Upstreams = append(f.Upstreams, r.Attempts[i].Upstream)
	}
	return f
}

// look notes what is asked of the fleet, and adds a point to the history when it is time
// for one.
func (c *console) look(now time.Time, states []pool.State) {
	cores, rate := c.side.served.demand(now, states)
	c.mu.Lock()
	c.load.Note(now, cores, rate)
	due := c.history.Due(now)
	c.mu.Unlock()
	if !due {
		return
	}
	minute := c.side.served.of(now, "").Windows[0]
	p := quality.Point{At: now, FirstByteP50: minute.All.FirstByte.P50, FirstByteP99: minute.All.FirstByte.P99}
	p.InFlight, p.Waiting = c.side.balancer.Counts()
	if minute.Covered > 0 {
		p.Jobs = float64(minute.All.Jobs) / minute.Covered
		p.Lost = float64(minute.All.Partial+minute.All.Absent) / minute.Covered
	}
	jobs := make(map[string]float64, len(states))
	for i := range states {
		jobs[states[i].Address] = math.Round(states[i].Jobs)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.Add(p, jobs)
}

// Now implements admin.Console.
func (c *console) Now() admin.Now {
	now := time.Now()
	states := c.side.balancer.States()
	n := admin.Now{
		At: now, Imbalance: quality.Imbalance(states), Fleet: c.side.served.of(now, ""),
		Upstreams: c.side.served.rows(now, states), Changes: c.side.served.changes(shownChanges),
	}
	if advice, err := c.capacity(states); err == nil {
		n.Capacity = &advice
	}
	n.InFlight, n.Waiting = c.side.balancer.Counts()
	if err := c.side.ready(); err != nil {
		n.NotReady = err.Error()
	}
	busiest := c.busiest(now, "", shownProjects)
	c.mu.Lock()
	n.Failures = append([]admin.Failure{}, c.failures...)
	if c.unread.Jobs > 0 {
		n.Unread = new(c.unread)
	}
	c.mu.Unlock()
	slices.Reverse(n.Failures)
	n.Projects = make([]admin.Project, len(busiest))
	for i, b := range busiest {
		p := admin.Project{Name: b.Name, Jobs: b.Jobs, ProjectLoad: c.side.balancer.Project(b.Key)}
		p.Cached, p.Assumed = c.side.balancer.CachedAt(b.Key)
		n.Projects[i] = p
	}
	return n
}

// History implements admin.Console.
func (c *console) History() quality.Series {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.history.Series()
}

// About implements admin.Console.
func (c *console) About() (admin.About, error) {
	cfg := c.side.current.Load().cfg
	text, err := cli.Encode(&cfg)
	return admin.About{
		Version: cli.Version(version), Go: runtime.Version(), Started: c.started,
		Write: cfg.AdminWrite, Configuration: string(text),
	}, err
}
