package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Stops schedules restarts of upstreams: a rolling restart, or the stops of pre-emptible machines (the thesis, 3.6). An
// upstream drains for 30 s before it stops, and restarts with an empty cache.
type Stops struct {
	// First is the time of the first stop; 0 means no stops. Every is the time between the stops of two upstreams; with
	// 0, all stop at once. Upstreams is the number of upstreams that stop; 0 means all.
	First     time.Duration `yaml:"first"`
	Every     time.Duration `yaml:"every"`
	Upstreams int           `yaml:"upstreams"`
	// Away is the downtime of a stopped upstream. With AwayMost, the downtime is random between the two.
	Away     time.Duration `yaml:"away"`
	AwayMost time.Duration `yaml:"away_most"`
	// Again is the uptime of a restarted upstream until its next stop; 0 means no further stop.
	Again time.Duration `yaml:"again"`
	// Early is the share of stops that happen earlier than announced, at a random time.
	Early float64 `yaml:"early"`
	// Known makes service discovery announce the time of each stop.
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

// noticeTime is the time for which an upstream drains before a stop. discoveryTime is the delay of service discovery.
const (
	noticeTime    = 30 * time.Second
	discoveryTime = 2 * time.Second
)

// startFleet schedules the first stops and gives the sidecars the set of upstreams.
func (w *world) startFleet() {
	v := w.cfg.Fleet.Stops
	for i, s := range w.servers {
		if v.First > 0 && (v.Upstreams == 0 || i < v.Upstreams) {
			w.planStop(s, v.First+time.Duration(i)*v.Every)
		}
	}
	w.discover()
}

// planStop schedules a stop of a server.
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

func (w *world) announce() {
	w.events.Add(w.now+discoveryTime, rankFleet, w.discover)
}

// discover gives every sidecar the current set of upstreams.
func (w *world) discover() {
	var set []pool.Upstream
	for _, s := range w.servers {
		if !s.up {
			continue
		}
		u := pool.Upstream{Address: s.address, Cores: s.reportedCores(), Draining: s.drain}
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

// stop stops a server and schedules its restart. The attempts at the server fail.
func (s *server) stop(w *world) {
	s.account(w.now)
	s.up, s.stopsAt = false, 0
	s.epoch++
	w.totals.Stops++
	lost := s.present
	s.present, s.held = nil, nil
	for _, j := range lost {
		j.on = nil
		if j.answering >= 0 { // the response has begun, so it cannot be retried
			j.assignment.Done(w.time(w.now), pool.Truncated)
			w.end(j, Lost)
			continue
		}
		j.side.fail(w, j, dispatch.Failure{Outcome: pool.NoAnswer, Progress: dispatch.Begun}, Lost)
	}
	w.announce()
	v := w.cfg.Fleet.Stops
	downtime := v.Away + time.Duration(w.stops.Float64()*float64(max(0, v.AwayMost-v.Away)))
	w.events.Add(w.now+downtime, rankFleet, func() {
		s.boot(w.now)
		if v.Again > 0 {
			w.planStop(s, w.now+v.Again)
		}
		w.announce()
	})
}
