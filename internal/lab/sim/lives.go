package sim

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Preemption is how upstreams come and go.
type Preemption struct {
	// Upstreams is how many are pre-emptible, the first ones. In a scenario 0 is
	// 10, or all if there are fewer.
	Upstreams int `yaml:"upstreams"`
	// Early is the share of lives that end before Life, at a time uniform over it.
	Early float64 `yaml:"early"`
	// Life is the longest life. Notice is how long before its end the notice comes.
	Life   time.Duration `yaml:"life"`
	Notice time.Duration `yaml:"notice"`
	// AwayMin and AwayMax bound how long an upstream stays away.
	AwayMin time.Duration `yaml:"away_min"`
	AwayMax time.Duration `yaml:"away_max"`
}

// SetDefaults fills in what a scenario leaves open.
func (p *Preemption) SetDefaults() {
	*p = Preemption{
		Life:    24 * time.Hour,
		Notice:  30 * time.Second,
		AwayMin: 5 * time.Minute,
		AwayMax: 10 * time.Minute,
	}
}

func (p *Preemption) check(f *settings.Faults, upstreams int) {
	f.Within("upstreams", p.Upstreams, 1, upstreams)
	if !(p.Early >= 0 && p.Early <= 1) {
		f.Add("early", "%v is not a share from 0 to 1", p.Early)
	}
	f.Positive("notice", p.Notice)
	f.Positive("away_min", p.AwayMin)
	if p.Life <= p.Notice {
		f.Add("life", "%v is not longer than the notice, %v", p.Life, p.Notice)
	}
	if p.AwayMax < p.AwayMin {
		f.Add("away_max", "%v is less than away_min, %v", p.AwayMax, p.AwayMin)
	}
}

// Growth is upstreams that join one after the other, the last ones of the fleet.
type Growth struct {
	Upstreams int `yaml:"upstreams"`
	// At is when the first joins, Every the time to the next.
	At    time.Duration `yaml:"at"`
	Every time.Duration `yaml:"every"`
}

// SetDefaults fills in what a scenario leaves open.
func (g *Growth) SetDefaults() { *g = Growth{Upstreams: 1} }

func (g *Growth) check(f *settings.Faults, upstreams int) {
	f.Within("upstreams", g.Upstreams, 1, upstreams-1)
	f.Positive("at", g.At)
	f.NotNegative("every", g.Every)
}

// Restart is a rolling restart: every upstream stops once, one after the other,
// and comes back with nothing in its cache.
type Restart struct {
	// At is when the first gets its notice, Every the time to the next.
	At    time.Duration `yaml:"at"`
	Every time.Duration `yaml:"every"`
	// Notice is the time from the notice to the stop. Away is the time to its return.
	Notice time.Duration `yaml:"notice"`
	Away   time.Duration `yaml:"away"`
	// Rename gives each a new address when it returns, as containers get.
	Rename bool `yaml:"rename"`
}

// SetDefaults fills in what a scenario leaves open.
func (r *Restart) SetDefaults() {
	*r = Restart{Every: time.Minute, Notice: 30 * time.Second, Away: 20 * time.Second}
}

func (r *Restart) check(f *settings.Faults) {
	f.Positive("at", r.At)
	f.Positive("every", r.Every)
	f.Positive("notice", r.Notice)
	f.Positive("away", r.Away)
}

// startFleet plans the lives of the servers and tells the sidecars who is there.
func (w *world) startFleet() {
	c := &w.cfg.Fleet
	if p := c.Preemption; p != nil {
		for _, s := range w.servers[:p.Upstreams] {
			// Somewhere within its life when the run begins.
			w.live(s, time.Duration(w.rng.Int64N(int64(p.Life))))
		}
	}
	if g := c.Growth; g != nil {
		for i, s := range w.servers[c.Upstreams-g.Upstreams:] {
			s.up = false
			w.events.add(g.At+time.Duration(i)*g.Every, rankFleet, &startup{server: s})
		}
	}
	if r := c.Restart; r != nil {
		for i, s := range w.servers {
			at := r.At + time.Duration(i)*r.Every
			w.retire(s, at, at+r.Notice, &startup{server: s, away: r.Away, rename: r.Rename})
		}
	}
	w.discover()
}

// live plans the rest of a server's life, after the time that is spent.
func (w *world) live(s *server, spent time.Duration) {
	p := w.cfg.Fleet.Preemption
	life := p.Life
	if w.rng.Float64() < p.Early {
		life = time.Duration(w.rng.Int64N(int64(p.Life)))
	}
	left := max(life-spent, p.Notice)
	s.started = w.now - spent
	s.stops = s.started + p.Life
	away := p.AwayMin + time.Duration(w.rng.Int64N(int64(p.AwayMax-p.AwayMin)+1))
	w.retire(s, w.now+left-p.Notice, w.now+left, &startup{server: s, away: away, preemptible: true})
}

// retire plans a server's notice, its stop and its return.
func (w *world) retire(s *server, notified, stops time.Duration, back *startup) {
	w.events.add(notified, rankFleet, (*notice)(s))
	w.events.add(stops, rankFleet, &stop{s, back})
}

// discover tells every sidecar the current set.
func (w *world) discover() {
	var set []pool.Upstream
	for _, s := range w.servers {
		if !s.up {
			continue
		}
		u := pool.Upstream{Address: s.address, Cores: s.cores, Draining: s.drain}
		if s.suffers(coreless, w.now) != nil {
			u.Cores = 0
		}
		if s.stops != never {
			u.StartedAt, u.StopsAt = w.time(s.started), w.time(s.stops)
		}
		set = append(set, u)
	}
	for _, side := range w.sidecars {
		side.pool.Set(w.time(w.now), set)
		side.serve(w)
	}
}

// discovery is a change that has reached the sidecars.
type discovery struct{}

func (discovery) happen(w *world) { w.discover() }

func (w *world) announce() {
	w.events.add(w.now+w.cfg.Fleet.Discovery, rankFleet, discovery{})
}

// notice is the warning that a server will stop.
type notice server

func (n *notice) happen(w *world) {
	n.drain = true
	w.announce()
}

// stop is the end of a server's life: what runs there is lost.
type stop struct {
	server *server
	back   *startup
}

func (x *stop) happen(w *world) {
	s := x.server
	s.account(w.now)
	s.up = false
	s.epoch++
	w.totals.Stops++
	lost := s.present
	s.present, s.held = nil, nil
	for _, j := range lost {
		j.on = nil
		if j.answering >= 0 { // bytes of an answer have reached the submitter
			j.assignment.Done(w.time(w.now), pool.Truncated)
			w.end(j, Lost)
			continue
		}
		j.side.fail(w, j, dispatch.Failure{Outcome: pool.NoAnswer, Progress: dispatch.Begun}, Lost)
	}
	w.announce()
	w.events.add(w.now+x.back.away, rankFleet, x.back)
}

// startup is a server that starts, with nothing in its cache.
type startup struct {
	server      *server
	away        time.Duration
	preemptible bool // it will go again
	rename      bool
}

func (c *startup) happen(w *world) {
	s := c.server
	s.boot(w.now)
	if c.rename {
		number := w.byName[s.address]
		s.address = fmt.Sprintf("rps-%02d-%d:80", number, s.epoch)
		w.byName[s.address] = number
	}
	if c.preemptible {
		w.live(s, 0)
	}
	w.announce()
}
