package logging

import (
	"errors"
	"io/fs"
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

// Journal logs each change of an upstream's state once, with its cause.
type Journal struct {
	log *zap.Logger

	mu    sync.Mutex
	seen  map[string]*condition
	panic bool // every breaker is open
}

// condition is the state of an upstream as it was last logged, and the errors to log with its next change.
type condition struct {
	down, shut, suspect, implausible, slow, silent, draining, hints bool

	missed  int    // reports that failed since the last fresh one
	polls   int    // polls of an upstream that has never reported
	never   bool   // it is logged that it has never reported
	report  error  // why the last report failed
	attempt string // why the last attempt failed since the last LogChanges; "" is none
	hint    error  // what is wrong with the last invalid load header; nil if the last ones were valid
	hintAge int    // calls of LogChanges since that header
}

// enoughPolls is the number of polls without a report after which an upstream is logged as
// one that reports nothing.
const enoughPolls = 3

// hintPause is the number of calls of LogChanges, one a second, after which the next invalid load
// header is logged.
const hintPause = 60

// NewJournal returns a journal without upstreams.
func NewJournal(log *zap.Logger) *Journal {
	return &Journal{log: log, seen: map[string]*condition{}}
}

// LogChanges logs the changes since the last call.
func (j *Journal) LogChanges(states []pool.State) {
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
		c.logChanges(j.log.With(zap.String("upstream", s.Address)), s)
		c.attempt = "" // it is no cause of what happens later
	}
	j.seen = left
	logTransition(j.log, &j.panic, pool.InPanic(states), quality.Panic, "the panic is over")
}

// logChanges logs the changes of one upstream; while it is down, only that.
func (c *condition) logChanges(log *zap.Logger, s *pool.State) {
	if c.hintAge++; c.hintAge > hintPause {
		c.hint = nil
	}
	logTransition(log, &c.down, !s.DownSince.IsZero(), "the upstream is down: jobs go elsewhere", "the upstream is up again", zap.String("cause", s.Down()))
	if c.down {
		return
	}
	last := zap.Skip()
	if c.attempt != "" {
		last = zap.String("last_error", c.attempt)
	}
	logTransition(log, &c.shut, s.Breaker.Why != "",
		"breaker opened: jobs go elsewhere", "breaker closed: the upstream works again", zap.String("cause", s.Breaker.Why), last)
	logTransition(log, &c.suspect, s.Suspect != "",
		"the upstream is suspect: it seems to hang, and new jobs go elsewhere",
		"the upstream is no longer suspect: it reports or responds again", zap.String("cause", s.Suspect))
	logTransition(log, &c.implausible, s.Implausible != "",
		"the upstream reports implausible figures: they count as unknown",
		"the upstream's figures are plausible again", zap.String("cause", s.Implausible))
	logTransition(log, &c.slow, s.Slow != "", "the upstream is slow", "the upstream is no longer slow", zap.String("cause", s.Slow))
	logTransition(log, &c.silent, !s.ReportFresh && c.missed > 0,
		"the upstream does not report: its load is estimated from other jobs and upstreams",
		"the upstream reports again", zap.NamedError("cause", c.report))
	never := "the upstream has not reported yet: its load is estimated from other jobs and upstreams"
	if errors.Is(c.report, fs.ErrNotExist) { // 404
		never = "the upstream reports nothing: its load is estimated from other jobs and upstreams"
	}
	logTransition(log, &c.never, c.never || c.polls >= enoughPolls, never, "", zap.NamedError("cause", c.report))
	logTransition(log, &c.hints, c.hint != nil, "the upstream's load header is invalid: its load is not read from it",
		"the upstream has sent no invalid load header for a minute", zap.NamedError("cause", c.hint))
	leaves := s.Draining || s.Reason == pool.Stopping
	switch {
	case leaves == c.draining:
	case !leaves:
		log.Info("the upstream takes jobs again: it no longer drains")
	case !s.Draining:
		log.Info("the upstream stops soon: it gets no new jobs", zap.Time("stops_at", s.StopsAt))
	case s.StopsAt.IsZero():
		log.Info("the upstream drains: it gets no new jobs")
	default:
		log.Info("the upstream drains: it gets no new jobs", zap.Time("stops_at", s.StopsAt))
	}
	c.draining = leaves
}

// logTransition logs the start of a condition, with the fields of its cause, and its end.
func logTransition(log *zap.Logger, was *bool, is bool, begins, ends string, why ...zap.Field) {
	switch {
	case is && !*was:
		log.Warn(begins, why...)
	case *was && !is:
		log.Info(ends)
	}
	*was = is
}

// ReportFailed records why a poll of an upstream failed. never is set for an upstream that has never reported.
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

// AttemptFailed records why an attempt failed. If that opens a breaker, the breaker's line has the reason.
func (j *Journal) AttemptFailed(a *record.Attempt) {
	if a.Outcome == pool.Gone || a.Outcome == pool.Moved { // not the upstream's fault
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(a.Upstream).attempt = a.Err
}

// HintInvalid records what is wrong with the load header of a response.
func (j *Journal) HintInvalid(address string, why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.of(address)
	c.hint, c.hintAge = why, 0
}

// of returns the condition of an upstream; j.mu must be held. The next LogChanges drops it if
// the upstream is no longer known.
func (j *Journal) of(address string) *condition {
	c := j.seen[address]
	if c == nil {
		c = new(condition)
		j.seen[address] = c
	}
	return c
}
