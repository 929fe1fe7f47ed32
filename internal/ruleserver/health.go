package ruleserver

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Health is the state of a server, with the names of Consul's checks.
type Health string

// The states. Only passing servers get jobs, unless a sidecar is configured to accept warnings.
const (
	Passing  Health = "passing"
	Warning  Health = "warning"  // overloaded
	Critical Health = "critical" // draining, or about to stop
)

// stopNotice is how long before its stop a pre-emptible server stops accepting jobs (the thesis, 3.6).
const stopNotice = 30 * time.Second

// Health returns the state of the server at now, and the reason. The server is overloaded with more than
// overloaded stalled joblets. stops is when it will stop; zero is never.
func (s *Server) Health(now time.Time, overloaded int, stops time.Time) (Health, string) {
	load := s.load()
	stalled := load.Stalled[executor.High] + load.Stalled[executor.Low]
	switch {
	case s.draining.Load():
		return Critical, "draining"
	case !stops.IsZero() && stops.Sub(now) <= stopNotice:
		return Critical, fmt.Sprintf("stops in %v", max(0, stops.Sub(now)).Round(time.Second))
	case stalled > overloaded:
		return Warning, fmt.Sprintf("overloaded: %d stalled joblets, and the limit is %d", stalled, overloaded)
	}
	return Passing, fmt.Sprintf("%d stalled joblets", stalled)
}
