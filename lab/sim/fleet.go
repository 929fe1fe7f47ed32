package sim

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/settings"
)

// The largest numbers that make sense; they bound memory.
const (
	maxUpstreams = 10_000
	maxCores     = 1 << 16
)

// The orders in which joblets of equal priority may run.
const arrival, expected = "arrival", "expected"

// Fleet is the modelled upstreams.
type Fleet struct {
	// Upstreams is how many there are.
	Upstreams int `yaml:"upstreams"`
	// Cores and Cache are of each upstream.
	Cores int           `yaml:"cores"`
	Cache settings.Size `yaml:"cache"`
	// Backlog is how many stalled joblets keep an upstream from accepting
	// connections; with 0 no number does.
	Backlog int `yaml:"backlog"`
	// Order says which of the joblets of equal priority goes first: that of the job that
	// came first (arrival), or that is expected to be short (expected), as at the
	// reference server.
	Order string `yaml:"order"`
	// Links is what fetches pass. Without any, they hold cores instead.
	Links Links `yaml:"links"`

	// Unlike is upstreams that differ, Fault what goes wrong with one; nil is nothing.
	Unlike Unlike `yaml:"-"`
	Fault  *Fault `yaml:"-"`
	// Restart is when a rolling restart begins: every upstream stops once, one a minute. With 0, none does.
	// StopsKnown has the catalogue tell from the beginning when each stops, as the end of a pre-emptible
	// upstream's life is.
	Restart    time.Duration `yaml:"restart"`
	StopsKnown bool          `yaml:"stops_known"`
}

// DefaultFleet is the thesis's.
func DefaultFleet() Fleet {
	return Fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30, Order: arrival}
}

// Check refuses nonsense.
func (v Fleet) Check(f *settings.Faults) {
	f.Within("upstreams", v.Upstreams, 1, maxUpstreams)
	f.Within("cores", v.Cores, 1, maxCores)
	f.AtLeast("cache", int64(v.Cache), 1)
	f.Within("backlog", v.Backlog, 0, 1<<30)
	f.AtLeast("links.upstream", int64(v.Links.Upstream), 0)
	f.AtLeast("links.shared", int64(v.Links.Shared), 0)
	f.OneOf("order", v.Order, []string{arrival, expected})
	f.NotNegative("restart", v.Restart)
	if v.StopsKnown && v.Restart == 0 {
		f.Add("stops_known", "without restart, no upstream stops")
	}
}

// Unlike is the first upstreams of a fleet, where they differ from the rest.
type Unlike struct {
	// Upstreams is how many they are, Cores how many each has, Speed how many times as fast their cores are.
	Upstreams, Cores int
	Speed            float64
}

// newServers makes the fleet.
func (w *world) newServers() {
	c := &w.cfg.Fleet
	for i := range c.Upstreams {
		s := newServer(fmt.Sprintf("rps-%02d:80", i), c)
		if i < c.Unlike.Upstreams {
			s.cores, s.speed = c.Unlike.Cores, c.Unlike.Speed
		}
		if f := c.Fault; f != nil && f.Upstream == i {
			s.fault = f
			if f.Kind == hung {
				w.events.Add(f.At+f.For, rankFleet, func() { s.resume(w) })
			}
		}
		w.servers = append(w.servers, s)
		w.byName[s.address] = i
	}
}
