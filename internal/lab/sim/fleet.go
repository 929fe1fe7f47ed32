package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// startFleet plans the lives of the servers and tells the sidecars who is there.
func (w *world) startFleet() {
	if p := w.cfg.Fleet.Preemption; p != nil {
		for _, s := range w.servers[:p.Upstreams] {
			// Somewhere within its life when the run begins.
			w.live(s, time.Duration(w.rng.Int64N(int64(p.Life))))
		}
	}
	w.discover()
}

// live plans the rest of a server's life, of which spent is over.
func (w *world) live(s *server, spent time.Duration) {
	p := w.cfg.Fleet.Preemption
	life := p.Life
	if w.rng.Float64() < p.Early {
		life = time.Duration(w.rng.Int64N(int64(p.Life)))
	}
	left := max(life-spent, p.Notice)
	s.started = w.now - spent
	s.stops = s.started + p.Life
	w.events.add(w.now+left-p.Notice, rankFleet, (*notice)(s))
	w.events.add(w.now+left, rankFleet, (*stop)(s))
}

// discover tells every sidecar the current set.
func (w *world) discover() {
	var set []pool.Upstream
	for _, s := range w.servers {
		if !s.up {
			continue
		}
		u := pool.Upstream{Address: s.address, Cores: s.cores, Draining: s.drain}
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
	w.events.add(w.now+w.cfg.Fleet.Preemption.Discovery, rankFleet, discovery{})
}

// notice is the cloud's warning.
type notice server

func (n *notice) happen(w *world) {
	n.drain = true
	w.announce()
}

// stop is the end of a server's life: what runs there is lost.
type stop server

func (x *stop) happen(w *world) {
	s := (*server)(x)
	p := w.cfg.Fleet.Preemption
	s.account(w.now)
	s.up = false
	s.epoch++
	w.totals.Preemptions++
	lost := s.present
	s.present = nil
	for _, j := range lost {
		j.on = nil
		if j.heard >= 0 { // bytes of an answer have reached the submitter
			j.assignment.Done(w.time(w.now), pool.Truncated)
			w.end(j, Lost)
			continue
		}
		j.side.fail(w, j, dispatch.Failure{Outcome: pool.NoAnswer, Progress: dispatch.Begun}, Lost)
	}
	w.announce()
	away := p.AwayMin + time.Duration(w.rng.Int64N(int64(p.AwayMax-p.AwayMin)+1))
	w.events.add(w.now+away, rankFleet, (*comeback)(s))
}

// comeback is a server that starts again, with nothing in its cache.
type comeback server

func (c *comeback) happen(w *world) {
	s := (*server)(c)
	s.boot(w.now, int64(w.cfg.Fleet.Cache))
	w.live(s, 0)
	w.announce()
}
