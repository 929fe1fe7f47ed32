package logging

import (
	"errors"
	"io/fs"
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Journal logs what changes about each upstream: once, with its cause.
type Journal struct {
	log *zap.Logger

	mu    sync.Mutex
	seen  map[string]*condition
	panic bool // every breaker is open
}

// condition is what the journal has said of an upstream, and why it may change.
type condition struct {
	down, shut, suspect, implausible, slow, silent, draining bool

	missed  int    // reports that failed since the last that was fresh
	polls   int    // without a report, of an upstream that never reported
	never   bool   // it was logged that it has never reported
	report  error  // why the last report failed
	attempt string // why the last attempt that failed did
}

// enoughPolls is how many polls of an upstream that has never reported must bring nothing
// before that is said.
const enoughPolls = 3

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
			c.missed, c.polls = 0, 0
		}
		c.tell(j.log.With(zap.String("upstream", s.Address)), s)
	}
	j.seen = left
	turn(j.log, &j.panic, pool.Panic(states), "panic: every breaker is open, so jobs go to all upstreams", "the panic is over")
}

// tell logs what is new about an upstream. While it is down, that is all.
func (c *condition) tell(log *zap.Logger, s *pool.State) {
	turn(log, &c.down, !s.DownSince.IsZero(), "the upstream is down: jobs go elsewhere", "the upstream is up again", zap.String("cause", s.Down()))
	if c.down {
		return
	}
	turn(log, &c.shut, s.Breaker.Why != "",
		"breaker opened: jobs go elsewhere", "breaker closed: the upstream works again",
		zap.String("cause", s.Breaker.Why), zap.String("last_error", c.attempt))
	turn(log, &c.suspect, s.Suspect != "",
		"the upstream is suspect: it seems to hang, and new jobs go elsewhere",
		"the upstream is no longer suspect: it reports or answers again", zap.String("cause", s.Suspect))
	turn(log, &c.implausible, s.Implausible != "",
		"the upstream reports what cannot be true: those figures count as unknown",
		"the upstream's figures are plausible again", zap.String("cause", s.Implausible))
	turn(log, &c.slow, s.Slow != "", "the upstream is slow", "the upstream is no longer slow", zap.String("cause", s.Slow))
	turn(log, &c.silent, !s.ReportFresh && c.missed > 0,
		"the upstream does not report: its load is judged by this sidecar's own jobs there",
		"the upstream reports again", zap.NamedError("cause", c.report))
	never := "the upstream has not reported yet: its load is judged by this sidecar's own jobs there"
	if errors.Is(c.report, fs.ErrNotExist) { // 404
		never = "the upstream reports nothing: its load is judged by this sidecar's own jobs there"
	}
	turn(log, &c.never, c.never || c.polls >= enoughPolls, never, "", zap.NamedError("cause", c.report))
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

// turn logs that something begins, with fields that say why, and that it ends.
func turn(log *zap.Logger, was *bool, is bool, begins, ends string, why ...zap.Field) {
	switch {
	case is && !*was:
		log.Warn(begins, why...)
	case *was && !is:
		log.Info(ends)
	}
	*was = is
}

// ReportFailed notes why an upstream that has reported could not be asked, or, where it never
// has, why a poll of it brought nothing.
func (j *Journal) ReportFailed(address string, never bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.of(address)
	if c.report = err; never {
		c.polls++
	} else {
		c.missed++
	}
}

// Ended notes why a job's attempts failed.
func (j *Journal) Ended(r *record.Job) {
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.Err != "" {
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
