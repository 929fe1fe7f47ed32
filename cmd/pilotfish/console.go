package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// now is what the page shows of the moment.
func (s *sidecar) now() admin.Now {
	open, states := s.balancer.Open(shownOpen), s.balancer.States()
	now := time.Now() // after all that is shown, so that no age is negative
	n := admin.Now{At: now, Panic: pool.Panic(states), Projects: s.busiestProjects(now), Open: []admin.Open{}}
	n.InFlight, n.Waiting = s.balancer.Counts()
	if err := s.refusal(); err != nil {
		n.NotReady = err.Error()
	}
	for _, o := range open {
		n.Open = append(n.Open, admin.Open{
			Named:   admin.Named{ID: o.ID, Session: o.Session, Project: o.Project, Priority: o.Priority.String()},
			Seconds: now.Sub(o.Arrived).Seconds(), Upstream: o.Upstream, UpstreamSeconds: now.Sub(o.Claimed).Seconds(),
		})
	}
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	n.Fleet, n.Upstreams = s.served.machine.Served(now), s.served.machine.Upstreams(now, states)
	n.Capacity = s.served.machine.Advice(now, states)
	n.Failures = append([]admin.Failure{}, s.served.failures...)
	slices.Reverse(n.Failures)
	return n
}

// points are the last hour.
func (s *sidecar) points() []quality.Point {
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	return s.served.machine.Points(time.Now())
}

func (s *sidecar) busiestProjects(now time.Time) []admin.Project {
	projects := []admin.Project{}
	for _, b := range s.served.busiest(now, shownProjects) {
		p := admin.Project{Name: b.Name, Jobs: b.Jobs, ProjectLoad: s.balancer.Project(now, b.Key)}
		p.Cached, p.Assumed = s.balancer.CachedAt(b.Key)
		projects = append(projects, p)
	}
	return projects
}

func (s *sidecar) about() (admin.About, error) {
	cfg := s.current.Load().cfg
	text, err := cli.Encode(&cfg)
	host, _ := os.Hostname() // "" is shown as no name
	return admin.About{
		Version: cli.Version(version), Go: runtime.Version(), Host: host, Ports: s.self, Started: s.started,
		Write: cfg.AdminWrite, Configuration: string(text),
	}, err
}

// refusal is why the sidecar does not want jobs; nil if it does.
func (s *sidecar) refusal() error {
	switch {
	case s.stopping.Load():
		return errors.New("shutting down")
	case !s.balancer.Ready():
		return errors.New("no upstreams are known yet")
	}
	return nil
}

// ready says how many upstreams are eligible, or why the sidecar does not want jobs.
func (s *sidecar) ready() (words string, err error) {
	if err := s.refusal(); err != nil {
		return "", err
	}
	eligible, states := 0, s.balancer.States()
	for i := range states {
		if states[i].Eligible {
			eligible++
		}
	}
	return fmt.Sprintf("%d of %d upstreams are eligible", eligible, len(states)), nil
}
