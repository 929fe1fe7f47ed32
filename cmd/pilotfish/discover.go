package main

import (
	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/pool"
)

func (s *sidecar) discoveryConfig(cfg *config.Config) discovery.Config {
	d := &cfg.Discovery
	c := discovery.Config{
		Static:  d.Static,
		Own:     s.own,
		Observe: s.heard,
	}
	if d.File != nil {
		c.File = &discovery.FileConfig{Path: d.File.Path, Interval: d.File.Interval}
	}
	if d.DNS != nil {
		c.DNS = &discovery.DNSConfig{Name: d.DNS.Name, Record: d.DNS.Record, Port: d.DNS.Port, Interval: d.DNS.Interval}
	}
	if k := d.Consul; k != nil {
		c.Guard = discovery.GuardConfig{HoldEmpty: k.KeepLast, HoldDrop: k.KeepLast / 3}
		c.Snapshot = k.Snapshot
		c.Consul = &discovery.ConsulConfig{
			Address: k.Address, Service: k.Service, Tag: k.Tag, Datacenter: k.Datacenter, Namespace: k.Namespace,
			TokenFile: k.TokenFile, TLS: discovery.TLSConfig(k.TLS), Stale: k.Stale, Wait: k.Wait,
		}
	}
	return c
}

// heard tells what is wrong with an answer of discovery's source.
func (s *sidecar) heard(st discovery.Status) {
	var wrong []zap.Field
	if st.Err != nil {
		wrong = append(wrong, zap.Error(st.Err))
	}
	if st.Doubt != discovery.None {
		wrong = append(wrong, zap.Stringer("doubt", st.Doubt))
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
