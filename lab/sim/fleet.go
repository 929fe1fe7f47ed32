package sim

import (
	"fmt"

	"example.org/pilotfish/internal/settings"
)

// Upper bounds of settings; they bound memory.
const (
	maxUpstreams = 10_000
	maxSidecars  = 100_000
	maxCores     = 1 << 16
)

// Values of Fleet.Order, the service order of joblets of equal priority.
const arrival, expected, known = "arrival", "expected", "known"

// Fleet configures the modelled upstreams.
type Fleet struct {
	// Upstreams is the number of upstreams.
	Upstreams int `yaml:"upstreams"`
	// Cores and Cache are the cores and the cache size of each upstream.
	Cores int `yaml:"cores"`
	// Secretive hides the number of cores from sidecars, which must estimate it.
	Secretive bool          `yaml:"-"`
	Cache     settings.Size `yaml:"cache"`
	// Containers replaces the cache by a container pool.
	Containers Containers `yaml:"containers"`
	// Backlog is the number of stalled joblets above which an upstream accepts no connections; 0 means no limit.
	Backlog int `yaml:"backlog"`
	// Order is the service order of joblets of equal priority: first come, first served (arrival); shortest expected
	// job first, as at the reference server (expected); or shortest job first with perfect knowledge (known).
	Order string `yaml:"order"`
	// Links models the bandwidth of fetches. With the zero value, fetches occupy cores instead.
	Links Links `yaml:"links"`

	// Unlike makes some upstreams different from the rest. Fault is a fault of one upstream; nil means none.
	Unlike Unlike `yaml:"-"`
	Fault  *Fault `yaml:"-"`
	// Stops schedules restarts of upstreams.
	Stops Stops `yaml:"stops"`
}

// Links is the bandwidth of fetches in bytes per second: of each upstream, and of what all upstreams share,
// such as a disk or a network. 0 means no bound. A fetch over links occupies no core.
type Links struct {
	Upstream settings.Size `yaml:"upstream"`
	Shared   settings.Size `yaml:"shared"`
}

// DefaultFleet returns the fleet of the thesis.
func DefaultFleet() Fleet {
	return Fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30, Order: arrival}
}

// Check adds invalid values to f.
func (v Fleet) Check(f *settings.Faults) {
	f.Within("upstreams", v.Upstreams, 1, maxUpstreams)
	f.Within("cores", v.Cores, 1, maxCores)
	f.AtLeast("cache", int64(v.Cache), 1)
	v.Containers.check(f.In("containers"))
	f.Within("backlog", v.Backlog, 0, 1<<30)
	f.AtLeast("links.upstream", int64(v.Links.Upstream), 0)
	f.AtLeast("links.shared", int64(v.Links.Shared), 0)
	f.OneOf("order", v.Order, []string{arrival, expected, known})
	v.Stops.check(f.In("stops"), v.Upstreams)
}

// Unlike gives the first upstreams of a fleet other cores than the rest.
type Unlike struct {
	// Upstreams is the number of these upstreams, Cores the number of cores of each, Speed the speed of their
	// cores as a multiple of the others' speed.
	Upstreams, Cores int
	Speed            float64
}

// Addresses returns the addresses of the upstreams.
func (v Fleet) Addresses() (all []string) {
	for i := range v.Upstreams {
		all = append(all, fmt.Sprintf("rps-%02d:80", i))
	}
	return all
}

// newServers creates the servers of the fleet.
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

// reportedCores returns the number of cores that the server reports; 0 if it hides them.
func (s *server) reportedCores() int {
	if s.fleet.Secretive {
		return 0
	}
	return s.cores
}
