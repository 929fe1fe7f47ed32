package sim

import (
	"fmt"

	"example.org/pilotfish/internal/settings"
)

// The largest numbers that make sense; they bound memory.
const (
	maxUpstreams = 10_000
	maxSidecars  = 100_000
	maxCores     = 1 << 16
)

// The orders in which joblets of equal priority may run.
const arrival, expected, known = "arrival", "expected", "known"

// Fleet is the modelled upstreams.
type Fleet struct {
	// Upstreams is how many there are.
	Upstreams int `yaml:"upstreams"`
	// Cores and Cache are of each upstream.
	Cores int `yaml:"cores"`
	// Secretive leaves it to sidecars to find out how many cores there are.
	Secretive bool          `yaml:"-"`
	Cache     settings.Size `yaml:"cache"`
	// Backlog is how many stalled joblets keep an upstream from accepting connections; with 0 no number does.
	Backlog int `yaml:"backlog"`
	// Order says which of the joblets of equal priority goes first: that of the job that came first (arrival), or
	// that is expected to be short (expected), as at the reference server, or that is (known), as no server can tell.
	Order string `yaml:"order"`
	// Links is what fetches pass. Without any, they hold cores instead.
	Links Links `yaml:"links"`

	// Unlike is upstreams that differ, Fault what goes wrong with one; nil is nothing.
	Unlike Unlike `yaml:"-"`
	Fault  *Fault `yaml:"-"`
	// Stops is when upstreams stop.
	Stops Stops `yaml:"stops"`
}

// Links is the bytes a second that fetches pass at each upstream, and at what all upstreams
// share, such as a disk or a network. With 0 there is no bound. A fetch that passes links holds no core.
type Links struct {
	Upstream settings.Size `yaml:"upstream"`
	Shared   settings.Size `yaml:"shared"`
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
	f.OneOf("order", v.Order, []string{arrival, expected, known})
	v.Stops.check(f.In("stops"), v.Upstreams)
}

// Unlike is the first upstreams of a fleet, where they differ from the rest.
type Unlike struct {
	// Upstreams is how many they are, Cores how many each has, Speed how many times as fast their cores are.
	Upstreams, Cores int
	Speed            float64
}

// Addresses are those of the upstreams.
func (v Fleet) Addresses() (all []string) {
	for i := range v.Upstreams {
		all = append(all, fmt.Sprintf("rps-%02d:80", i))
	}
	return all
}

// newServers makes the fleet.
func (w *world) newServers() {
	c := &w.cfg.Fleet
	for i, address := range c.Addresses() {
		s := &server{fleet: c, address: address, cores: c.Cores, speed: 1}
		s.boot(0)
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

// told is how many cores it tells; 0 is none.
func (s *server) told() int {
	if s.fleet.Secretive {
		return 0
	}
	return s.cores
}
