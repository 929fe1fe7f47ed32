package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Restart is a rolling restart: every upstream stops once, one after the other,
// and comes back with nothing in its cache.
type Restart struct {
	// At is when the first gets its notice, Every the time to the next.
	At    time.Duration `yaml:"at"`
	Every time.Duration `yaml:"every"`
	// Notice is the time from the notice to the stop. Away is the time to its return.
	Notice time.Duration `yaml:"notice"`
	Away   time.Duration `yaml:"away"`
	// Known has the catalogue tell from the beginning when each stops, as the end of a
	// pre-emptible upstream's life is.
	Known bool `yaml:"known"`
}

// SetDefaults fills in what a scenario leaves open.
func (r *Restart) SetDefaults() {
	*r = Restart{Every: time.Minute, Notice: 30 * time.Second, Away: 20 * time.Second}
}

// UnmarshalYAML reads a section. A new one begins with the defaults.
func (r *Restart) UnmarshalYAML(decode func(any) error) error {
	type section Restart
	if *r == (Restart{}) {
		r.SetDefaults()
	}
	return decode((*section)(r))
}

func (r *Restart) check(f *settings.Faults) {
	f.Positive("at", r.At)
	f.Positive("every", r.Every)
	f.Positive("notice", r.Notice)
	f.Positive("away", r.Away)
}

// startFleet plans the lives of the servers and tells the sidecars who is there.
func (w *world) startFleet() {
	if r := w.cfg.Fleet.Restart; r != nil {
		for i, s := range w.servers {
			at := r.At + time.Duration(i)*r.Every
			w.events.add(at, rankFleet, (*notice)(s))
			w.events.add(at+r.Notice, rankFleet, (*stop)(s))
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
		if r := w.cfg.Fleet.Restart; r != nil && r.Known && s.epoch == 1 { // its first life
			u.StopsAt = w.time(r.At + time.Duration(i)*r.Every + r.Notice)
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

// discoveryTime is how long the sidecars take to hear of a change.
const discoveryTime = 2 * time.Second

func (w *world) announce() {
	w.events.add(w.now+discoveryTime, rankFleet, discovery{})
}

// notice is the warning that a server will stop.
type notice server

func (n *notice) happen(w *world) {
	n.drain = true
	w.announce()
}

// stop is the end of a server's life: what runs there is lost.
type stop server

func (x *stop) happen(w *world) {
	s := (*server)(x)
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
	w.events.add(w.now+w.cfg.Fleet.Restart.Away, rankFleet, (*startup)(s))
}

// startup is a server that starts, with nothing in its cache.
type startup server

func (c *startup) happen(w *world) {
	(*server)(c).boot(w.now)
	w.announce()
}
