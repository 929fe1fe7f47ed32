package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// served is the shell around the machine of quality: a lock, the clock, and the log.
type served struct {
	log *zap.Logger

	mu      sync.Mutex
	machine *quality.Machine
}

func newServed(log *zap.Logger) *served {
	return &served{log: log, machine: quality.New(time.Now())}
}

// began counts a response that has begun.
func (s *served) began(now time.Time, j *dispatch.Job, c pool.Choice) {
	bound := j.FirstByte
	if !j.Deadline.IsZero() {
		bound = min(bound, j.Deadline.Sub(j.Arrived))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Began(now, quality.FirstByte{Upstream: c.Address, Arrived: j.Arrived, Claimed: c.Claimed, Bound: bound})
}

// ended counts a job that has ended.
func (s *served) ended(now time.Time, j *quality.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Observe(now, j)
}

// look judges the modes, and logs those that changed.
func (s *served) look(now time.Time, states []pool.State) {
	s.mu.Lock()
	s.machine.Follow(addresses(upstreams(states)))
	changes := s.machine.Advance(now)
	s.mu.Unlock()
	for _, c := range changes {
		s.write(c)
	}
}

// write logs a change of the mode, unless it is minor.
func (s *served) write(c quality.Change) {
	if minor(c) {
		return
	}
	text := map[quality.Mode]string{
		quality.Flat:    "jobs are served alike again",
		quality.Growing: "more work comes than is done: each job waits longer than the one before",
		quality.Losing:  "jobs are being lost: submitters get their results in part, or not at all",
	}[c.To]
	fields := []zap.Field{zap.Stringer("from", c.From), zap.Stringer("to", c.To), zap.String("cause", c.Cause)}
	if c.Upstream != "" {
		fields = append(fields, zap.String("upstream", c.Upstream))
	}
	if c.To == quality.Flat {
		s.log.Info(text, fields...)
		return
	}
	s.log.Warn(text, fields...)
}

// Summary is all that is known now. The lock is held for one upstream at a time.
func (s *served) Summary() quality.Summary {
	now := time.Now()
	s.mu.Lock()
	sum := quality.Summary{At: now, Fleet: s.machine.Served(now, ""), Changes: s.machine.Changes(), Upstreams: []quality.Served{}}
	addresses := s.machine.Upstreams()
	s.mu.Unlock()
	for _, a := range addresses {
		s.mu.Lock()
		sum.Upstreams = append(sum.Upstreams, s.machine.Served(now, a))
		s.mu.Unlock()
	}
	return sum
}

// of is how the upstream at an address, or the fleet for "", served its jobs.
func (s *served) of(now time.Time, address string) quality.Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Served(now, address)
}

// rows are the upstreams' states, with their modes.
func (s *served) rows(now time.Time, states []pool.State) []admin.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]admin.Upstream, len(states))
	for i := range states {
		rows[i] = admin.Upstream{State: states[i], Mode: s.machine.Status(states[i].Address).Mode}
		rows[i].MinuteJobs, rows[i].MinuteLost = s.machine.Minute(now, states[i].Address)
	}
	return rows
}

// changes are the modes that were entered last, the latest last. Minor ones are left out.
func (s *served) changes(most int) []quality.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(s.machine.Changes(), minor)
	return all[max(0, len(all)-most):]
}

// minor reports whether a change says only that there were enough jobs to judge by, or no longer.
func minor(c quality.Change) bool {
	return c.To == quality.Unknown || c.From == quality.Unknown && c.To == quality.Flat
}

// statuses are the modes of the fleet and of each upstream.
func (s *served) statuses() (fleet quality.Status, upstreams map[string]quality.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	upstreams = map[string]quality.Status{}
	for _, a := range s.machine.Upstreams() {
		upstreams[a] = s.machine.Status(a)
	}
	return s.machine.Status(""), upstreams
}

// watch looks at the upstreams and at the modes every second until ctx ends.
func (s *sidecar) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
			states := s.balancer.States()
			s.journal.Look(states)
			now := time.Now()
			s.served.look(now, states)
			s.console.look(now, states)
		}
	}
}
