package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Stops is upstreams that stop, and come back with an empty cache: one after the other in a rolling restart, or at the end
// of their lives, as pre-emptible machines do (the thesis, 3.6). 30 s before, an upstream drains.
type Stops struct {
	// First is when the first upstream stops; 0 is that none does. Every is from the stop of one to that of the next: with
	// 0, all stop at one instant. Upstreams is how many stop; 0 is all.
	First     time.Duration `yaml:"first"`
	Every     time.Duration `yaml:"every"`
	Upstreams int           `yaml:"upstreams"`
	// Away is how long an upstream is gone, or a random time from there to AwayMost.
	Away     time.Duration `yaml:"away"`
	AwayMost time.Duration `yaml:"away_most"`
	// Again is how long an upstream lives that came back; 0 is to the end of the run.
	Again time.Duration `yaml:"again"`
	// Early is the share of lives that end sooner, at a random instant that no catalogue knows.
	Early float64 `yaml:"early"`
	// Known has the catalogue publish when each stops.
	Known bool `yaml:"known"`
}

func (v Stops) check(f *settings.Faults, upstreams int) {
	if v.First == 0 && v != (Stops{}) {
		f.Add("first", "without it, no upstream stops")
	}
	f.NotNegative("first", v.First)
	f.NotNegative("every", v.Every)
	f.NotNegative("away", v.Away)
	f.NotNegative("away_most", v.AwayMost)
	f.NotNegative("again", v.Again)
	f.Within("upstreams", v.Upstreams, 0, upstreams)
	f.Between("early", v.Early, 0, 1)
}

// noticeTime is from an upstream's notice to its stop, discoveryTime how long until sidecars know of a change.
const (
	noticeTime    = 30 * time.Second
	discoveryTime = 2 * time.Second
)

// startFleet plans the first stops, and gives the sidecars the upstreams.
func (w *world) startFleet() {
	v := w.cfg.Fleet.Stops
	for i, s := range w.servers {
		if v.First > 0 && (v.Upstreams == 0 || i < v.Upstreams) {
			w.planStop(s, v.First+time.Duration(i)*v.Every)
		}
	}
	w.discover()
}

// planStop plans the end of a server's life.
func (w *world) planStop(s *server, at time.Duration) {
	s.stopsAt = at
	if w.stops.Float64() < w.cfg.Fleet.Stops.Early {
		at = w.now + time.Duration(w.stops.Float64()*float64(at-w.now))
	}
	w.events.Add(max(w.now, at-noticeTime), rankFleet, func() {
		s.drain = true
		w.announce()
	})
	w.events.Add(at, rankFleet, func() { s.stop(w) })
}

// awayFor draws how long a server is gone.
func (w *world) awayFor() time.Duration {
	v := w.cfg.Fleet.Stops
	return v.Away + time.Duration(w.stops.Float64()*float64(max(0, v.AwayMost-v.Away)))
}

func (w *world) announce() {
	w.events.Add(w.now+discoveryTime, rankFleet, w.discover)
}

// discover gives every sidecar the current set.
func (w *world) discover() {
	var set []pool.Upstream
	for _, s := range w.servers {
		if !s.up {
			continue
		}
		u := pool.Upstream{Address: s.address, Cores: s.told(), Draining: s.drain}
		if w.cfg.Fleet.Stops.Known && s.stopsAt > 0 {
			u.StopsAt = w.time(s.stopsAt)
		}
		set = append(set, u)
	}
	for _, side := range w.sidecars {
		side.pool.Set(w.time(w.now), set)
		side.serve(w)
	}
}

// stop is the end of a server's life: what runs there is lost. It comes back with nothing in its cache.
func (s *server) stop(w *world) {
	s.account(w.now)
	s.up, s.stopsAt = false, 0
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
	w.events.Add(w.now+w.awayFor(), rankFleet, func() {
		s.boot(w.now)
		if v := w.cfg.Fleet.Stops; v.Again > 0 {
			w.planStop(s, w.now+v.Again)
		}
		w.announce()
	})
}
