package main

import (
	"go.uber.org/zap"

	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/pool"
)

// logDiscovery warns of what is wrong with a reply of discovery's source.
func (s *sidecar) logDiscovery(st discovery.Status) {
	var wrong []zap.Field
	if st.Err != nil {
		wrong = append(wrong, zap.Error(st.Err))
	}
	if st.Doubt != "" {
		wrong = append(wrong, zap.String("doubt", st.Doubt))
	}
	if st.Flaw != nil {
		wrong = append(wrong, zap.NamedError("flaw", st.Flaw))
	}
	if st.SnapshotErr != nil {
		wrong = append(wrong, zap.NamedError("snapshot", st.SnapshotErr))
	}
	if len(wrong) > 0 {
		s.log.Warn("discovery", append(wrong, zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))...)
	}
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
