package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// A rolling restart: every upstream gets a notice, stops, and comes back with nothing in its cache.
const (
	everyRestart = time.Minute      // from the notice of one upstream to that of the next
	noticeTime   = 30 * time.Second // from the notice to the stop
	awayTime     = 20 * time.Second // from the stop to the return
)

// stopsAt is when an upstream stops, if it does.
func (v *Fleet) stopsAt(number int) time.Duration {
	return v.Restart + time.Duration(number)*everyRestart + noticeTime
}

// startFleet plans the lives of the servers and tells the sidecars who is there.
func (w *world) startFleet() {
	if w.cfg.Fleet.Restart > 0 {
		for i, s := range w.servers {
			at := w.cfg.Fleet.stopsAt(i)
			w.events.Add(at-noticeTime, rankFleet, func() {
				s.drain = true
				w.announce()
			})
			w.events.Add(at, rankFleet, func() { s.stop(w) })
		}
	}
	w.discover()
}

// discover tells every sidecar the current set.
func (w *world) discover() {
	var set []pool.Upstream
	for i, s := range w.servers {
		if !s.up {
			continue
		}
		u := pool.Upstream{Address: s.address, Cores: s.cores, Draining: s.drain}
		if w.cfg.Fleet.StopsKnown && s.epoch == 1 { // its first life
			u.StopsAt = w.time(w.cfg.Fleet.stopsAt(i))
		}
		set = append(set, u)
	}
	for _, side := range w.sidecars {
		side.pool.Set(w.time(w.now), set)
		side.serve(w)
	}
}

// discoveryTime is how long the sidecars take to hear of a change.
const discoveryTime = 2 * time.Second

func (w *world) announce() {
	w.events.Add(w.now+discoveryTime, rankFleet, w.discover)
}

// stop is the end of a server's life: what runs there is lost. It comes back with nothing in its cache.
func (s *server) stop(w *world) {
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
	w.events.Add(w.now+awayTime, rankFleet, func() {
		s.boot(w.now)
		w.announce()
	})
}
