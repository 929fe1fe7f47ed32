package main

import (
	"cmp"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/pool"
)

// reported returns the addresses of the upstreams that have ever reported.
func reported(states []pool.State) (list []string) {
	for i := range states {
		if states[i].ReportAge >= 0 {
			list = append(list, states[i].Address)
		}
	}
	return list
}

func upstreams(states []pool.State) []pool.Upstream {
	set := make([]pool.Upstream, len(states))
	for i := range states {
		set[i] = states[i].Upstream
	}
	return set
}

func addresses(set []pool.Upstream) []string {
	list := make([]string, len(set))
	for i := range set {
		list[i] = set[i].Address
	}
	return list
}

// logDiscovery logs trouble of discovery, or its end.
func (s *sidecar) logDiscovery(st discovery.Status) {
	if st.Trouble == "" {
		s.log.Info("discovery works again", zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
		return
	}
	s.log.Warn("discovery: the source fails, or its list is not accepted in full", zap.String("cause", st.Trouble), zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
}

// noUpstream returns why no upstream is known; "" if some are.
func (s *sidecar) noUpstream() string {
	if s.balancer.Ready() {
		return ""
	}
	return cmp.Or(s.current.Load().discovery.Status().Text(), "no upstream is known yet")
}
