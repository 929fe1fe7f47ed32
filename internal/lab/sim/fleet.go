package sim

import (
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/internal/settings"
)

// The largest numbers that make sense; they bound memory.
const (
	maxUpstreams = 10_000
	maxCores     = 1 << 16
)

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
	// Parallel is how many cores a joblet may run on. It takes those that are free
	// when it begins. Each beyond the first adds 0.8 to its speed.
	Parallel int `yaml:"parallel"`
	// Contention is by how much longer a joblet lasts that begins when every other
	// core is busy, as a share of its work.
	Contention float64 `yaml:"contention"`
	// Discovery is how long the sidecars take to hear of a change.
	Discovery time.Duration `yaml:"discovery"`

	// Unlike is upstreams that differ, Faults what goes wrong with some.
	Unlike []*Unlike `yaml:"unlike"`
	Faults []*Fault  `yaml:"faults"`
	// Without Preemption, Growth and Restart, upstreams neither come nor go.
	Preemption *Preemption `yaml:"preemption"`
	Growth     *Growth     `yaml:"growth"`
	Restart    *Restart    `yaml:"restart"`
}

// DefaultFleet is the thesis's.
func DefaultFleet() Fleet {
	return Fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30, Parallel: 1, Discovery: 2 * time.Second}
}

// Check refuses nonsense.
func (v Fleet) Check(f *settings.Faults) {
	f.Within("upstreams", v.Upstreams, 1, maxUpstreams)
	f.Within("cores", v.Cores, 1, maxCores)
	f.AtLeast("cache", int64(v.Cache), 1)
	f.Within("backlog", v.Backlog, 0, 1<<30)
	f.Within("parallel", v.Parallel, 1, maxCores)
	f.Between("contention", v.Contention, 0, 100)
	f.Positive("discovery", v.Discovery)
	for i, u := range v.Unlike {
		u.check(f.In(fmt.Sprintf("unlike[%d]", i)), v.Upstreams)
	}
	for i, x := range v.Faults {
		x.check(f.In(fmt.Sprintf("faults[%d]", i)), v.Upstreams)
	}
	if v.Preemption != nil {
		v.Preemption.check(f.In("preemption"), v.Upstreams)
	}
	if v.Growth != nil {
		v.Growth.check(f.In("growth"), v.Upstreams)
	}
	if v.Restart != nil {
		v.Restart.check(f.In("restart"))
	}
	if v.Restart != nil && v.Preemption != nil {
		f.Add("restart", "either upstreams are pre-empted or they restart, not both")
	}
}

// Scale takes a share of the time, above 0 to 1: what happens at a set time
// happens at the same share of the whole. Lives stay as long as they are.
func (v *Fleet) Scale(share float64) {
	scale := func(d *time.Duration) { *d = time.Duration(float64(*d) * share) }
	v.Faults = slices.Clone(v.Faults)
	for i, old := range v.Faults {
		x := *old
		scale(&x.At)
		scale(&x.For)
		scale(&x.Every)
		v.Faults[i] = &x
	}
	if v.Growth != nil {
		g := *v.Growth
		scale(&g.At)
		scale(&g.Every)
		v.Growth = &g
	}
	if v.Restart != nil {
		r := *v.Restart
		scale(&r.At)
		scale(&r.Every)
		v.Restart = &r
	}
}

// Unlike is upstreams that differ from the rest of the fleet.
type Unlike struct {
	// Upstreams is how many they are, First the number of the first of them.
	Upstreams int `yaml:"upstreams"`
	First     int `yaml:"first"`
	// Cores is how many each has; 0 is as many as the others.
	Cores int `yaml:"cores"`
	// Speed is how many times as fast their cores are.
	Speed float64 `yaml:"speed"`
}

// SetDefaults fills in what a scenario leaves open.
func (v *Unlike) SetDefaults() { *v = Unlike{Upstreams: 1, Speed: 1} }

// String tells people how they differ.
func (v *Unlike) String() string {
	text := fmt.Sprintf("%d %v times as fast", v.Upstreams, v.Speed)
	if v.Cores > 0 {
		text = fmt.Sprintf("%d of %d cores %v times as fast", v.Upstreams, v.Cores, v.Speed)
	}
	return text
}

func (v *Unlike) check(f *settings.Faults, upstreams int) {
	if v == nil {
		f.Add("", "nothing is said of these upstreams")
		return
	}
	checkSome(f, v.First, v.Upstreams, upstreams)
	f.Within("cores", v.Cores, 0, maxCores)
	f.Between("speed", v.Speed, 1e-3, 1e3)
}

// newServers makes the fleet.
func (w *world) newServers() {
	c := &w.cfg.Fleet
	for i := range c.Upstreams {
		s := newServer(fmt.Sprintf("rps-%02d:80", i), c)
		for _, u := range c.Unlike {
			if i < u.First || i >= u.First+u.Upstreams {
				continue
			}
			s.speed = u.Speed
			if u.Cores > 0 {
				s.cores = u.Cores
			}
		}
		w.servers = append(w.servers, s)
		w.byName[s.address] = i
	}
	w.startFaults()
}
