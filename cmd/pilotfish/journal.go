package main

import (
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// journal logs what changes about each upstream: once, with its cause.
type journal struct {
	log *zap.Logger

	mu   sync.Mutex
	seen map[string]*condition
}

// condition is what the journal has said of an upstream, and why it may change.
type condition struct {
	suspected, suspect, implausible, silent, draining bool

	reported bool  // a report of it was fresh once
	unheard  int   // reports that failed since then
	report   error // why the last report failed
	attempt  error // why the last attempt that failed did
}

// enoughUnheard is how many reports must fail before an upstream that has never
// reported is called silent.
const enoughUnheard = 3

func newJournal(log *zap.Logger) *journal {
	return &journal{log: log, seen: map[string]*condition{}}
}

// look logs what is new since the last look.
func (j *journal) look(states []pool.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := make(map[string]*condition, len(states))
	for i := range states {
		s := &states[i]
		c := j.of(s.Address)
		left[s.Address] = c
		log := j.log.With(zap.String("upstream", s.Address))
		if s.ReportFresh {
			c.reported, c.unheard = true, 0
		}
		j.failures(log, c, s)
		j.suspicion(log, c, s)
		j.nonsense(log, c, s)
		j.silence(log, c, s)
		if s.Draining != c.draining {
			c.draining = s.Draining
			switch {
			case !s.Draining:
				log.Info("the upstream takes jobs again: it no longer drains")
			case s.StopsAt.IsZero():
				log.Info("the upstream drains: it gets no new jobs")
			default:
				log.Info("the upstream drains: it gets no new jobs", zap.Time("stops_at", s.StopsAt))
			}
		}
	}
	j.seen = left
}

func (j *journal) failures(log *zap.Logger, c *condition, s *pool.State) {
	suspected := s.Breaker.State != breaker.Closed
	switch {
	case suspected && !c.suspected:
		log.Warn("the upstream is suspected: attempts failed one after another, and jobs go elsewhere", zap.NamedError("cause", c.attempt))
	case c.suspected && !suspected:
		log.Info("the upstream works again")
	}
	c.suspected = suspected
}

func (j *journal) suspicion(log *zap.Logger, c *condition, s *pool.State) {
	suspect := s.Suspect != ""
	switch {
	case suspect && !c.suspect:
		log.Warn("the upstream is suspect: it seems to hang, and new jobs go elsewhere", zap.String("cause", s.Suspect))
	case c.suspect && !suspect:
		log.Info("the upstream is no longer suspect: it reports or answers again")
	}
	c.suspect = suspect
}

func (j *journal) nonsense(log *zap.Logger, c *condition, s *pool.State) {
	implausible := s.Implausible != ""
	switch {
	case implausible && !c.implausible:
		log.Warn("the upstream reports what cannot be true: those figures count as unknown", zap.String("cause", s.Implausible))
	case c.implausible && !implausible:
		log.Info("the upstream's figures are plausible again")
	}
	c.implausible = implausible
}

func (j *journal) silence(log *zap.Logger, c *condition, s *pool.State) {
	silent := !s.ReportFresh && (c.reported || c.unheard >= enoughUnheard)
	switch {
	case silent && !c.silent:
		log.Warn("the upstream does not report: its load is judged by this sidecar's own jobs there", zap.NamedError("cause", c.report))
	case c.silent && !silent:
		log.Info("the upstream reports again")
	}
	c.silent = silent
}

// reportFailed notes why an upstream could not be asked.
func (j *journal) reportFailed(address string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.of(address)
	c.report = err
	c.unheard++
}

// ended notes why a job's attempts failed.
func (j *journal) ended(r *record.Job) {
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.Err != nil {
			j.mu.Lock()
			j.of(a.Upstream).attempt = a.Err
			j.mu.Unlock()
		}
	}
}

// of is the condition of an upstream; j.mu must be held. The next look drops it if
// the upstream has left.
func (j *journal) of(address string) *condition {
	c := j.seen[address]
	if c == nil {
		c = new(condition)
		j.seen[address] = c
	}
	return c
}
