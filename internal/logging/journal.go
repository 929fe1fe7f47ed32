package logging

import (
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Journal logs what changes about each upstream: once, with its cause.
type Journal struct {
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

// NewJournal returns a journal that has seen no upstream yet.
func NewJournal(log *zap.Logger) *Journal {
	return &Journal{log: log, seen: map[string]*condition{}}
}

// Look logs what is new since the last look.
func (j *Journal) Look(states []pool.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := make(map[string]*condition, len(states))
	for i := range states {
		s := &states[i]
		c := j.of(s.Address)
		left[s.Address] = c
		if s.ReportFresh {
			c.reported, c.unheard = true, 0
		}
		c.tell(j.log.With(zap.String("upstream", s.Address)), s)
	}
	j.seen = left
}

// tell logs what is new about an upstream.
func (c *condition) tell(log *zap.Logger, s *pool.State) {
	turn := func(was *bool, is bool, cause zap.Field, begins, ends string) {
		switch {
		case is && !*was:
			log.Warn(begins, cause)
		case *was && !is:
			log.Info(ends)
		}
		*was = is
	}
	turn(&c.suspected, s.Breaker.State != breaker.Closed, zap.NamedError("cause", c.attempt),
		"the upstream is suspected: attempts failed one after another, and jobs go elsewhere",
		"the upstream works again")
	turn(&c.suspect, s.Suspect != "", zap.String("cause", s.Suspect),
		"the upstream is suspect: it seems to hang, and new jobs go elsewhere",
		"the upstream is no longer suspect: it reports or answers again")
	turn(&c.implausible, s.Implausible != "", zap.String("cause", s.Implausible),
		"the upstream reports what cannot be true: those figures count as unknown",
		"the upstream's figures are plausible again")
	turn(&c.silent, !s.ReportFresh && (c.reported || c.unheard >= enoughUnheard), zap.NamedError("cause", c.report),
		"the upstream does not report: its load is judged by this sidecar's own jobs there",
		"the upstream reports again")
	switch {
	case s.Draining == c.draining:
	case !s.Draining:
		log.Info("the upstream takes jobs again: it no longer drains")
	case s.StopsAt.IsZero():
		log.Info("the upstream drains: it gets no new jobs")
	default:
		log.Info("the upstream drains: it gets no new jobs", zap.Time("stops_at", s.StopsAt))
	}
	c.draining = s.Draining
}

// ReportFailed notes why an upstream could not be asked.
func (j *Journal) ReportFailed(address string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.of(address)
	c.report = err
	c.unheard++
}

// Ended notes why a job's attempts failed.
func (j *Journal) Ended(r *record.Job) {
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
func (j *Journal) of(address string) *condition {
	c := j.seen[address]
	if c == nil {
		c = new(condition)
		j.seen[address] = c
	}
	return c
}
