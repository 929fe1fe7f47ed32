package logging

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// Jobs writes a line for each job that its settings choose.
type Jobs struct {
	log *zap.Logger
	// good counts the jobs that neither failed nor were slow.
	good atomic.Int64

	mu     sync.Mutex
	unread int       // jobs since the last warning of them
	warned time.Time // when that was
}

// NewJobs returns one that has written nothing yet.
func NewJobs(log *zap.Logger) *Jobs { return &Jobs{log: log} }

// Write writes a job's one line: a warning where it failed.
func (l *Jobs) Write(set Settings, r *record.Job) {
	if r.PassedUnread() {
		l.warnUnread(r)
	}
	failed := r.Outcome != intake.Answered && r.Outcome != intake.Gone
	if !l.chosen(set, failed, r.Total >= set.Slow) {
		return
	}
	level := zap.InfoLevel
	if failed {
		level = zap.WarnLevel
	}
	entry := l.log.Check(level, "job")
	if entry == nil {
		return
	}
	line := &jobLine{Job: r}
	line.fields[0] = zap.Inline(line)
	entry.Write(line.fields[:]...)
}

// warnUnread warns that bodies are passed on without being read: a job of high
// priority may be among them. It warns once a minute at most, with any settings.
func (l *Jobs) warnUnread(r *record.Job) {
	now := r.Arrived.Add(r.Total)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread++
	if now.Sub(l.warned) < time.Minute {
		return
	}
	l.log.Warn("jobs are passed on without being read: what they say of their priority and project is lost",
		zap.Int("jobs", l.unread), zap.String("last", r.Unread))
	l.unread, l.warned = 0, now
}

// chosen says whether a job gets its line. Of the jobs that are neither failed
// nor slow, the share that the settings name are spread evenly.
func (l *Jobs) chosen(set Settings, failed, slow bool) bool {
	switch {
	case set.Jobs == noJobs:
		return false
	case failed || slow && set.Jobs != failedJobs:
		return true
	case set.Jobs != allJobs:
		return false
	}
	n := float64(l.good.Add(1))
	return math.Floor(n*set.Share) > math.Floor((n-1)*set.Share)
}

// jobLine is a job's fields in its line, in one piece with what it takes to write them.
type jobLine struct {
	*record.Job
	at     int          // the attempt that is written
	room   [160]byte    // for the text of one field
	fields [1]zap.Field // the line itself
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l *jobLine) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("id", l.ID)
	enc.AddByteString("session", l.Facts.Session.Append(l.room[:0]))
	enc.AddByteString("project", l.Facts.Project.Append(l.room[:0]))
	enc.AddString("priority", l.Facts.Priority.String())
	enc.AddString("read", l.Read.String())
	enc.AddString("outcome", l.Outcome.String())
	enc.AddInt("status", l.Status)
	if err := enc.AddArray("attempts", (*attempts)(l)); err != nil {
		return err
	}
	enc.AddFloat64("queue_seconds", l.Queued.Seconds())
	enc.AddFloat64("ttfb_seconds", l.TTFB.Seconds())
	enc.AddFloat64("total_seconds", l.Total.Seconds())
	enc.AddInt64("body_bytes", l.Body)
	enc.AddInt64("answer_bytes", l.Bytes)
	enc.AddString("answer", l.Completeness.String())
	if l.Unread != "" {
		enc.AddString("unread", l.Unread)
	}
	if l.Reason != "" {
		enc.AddString("reason", l.Reason)
	}
	if l.Unframed {
		enc.AddBool("unframed", true)
	}
	if l.Unkept {
		enc.AddBool("replay_disabled", true)
	}
	if l.Err != nil {
		enc.AddString("error", l.Err.Error())
	}
	return nil
}

// attempts are the upstreams tried, each with what speaks for the choice.
type attempts jobLine

// MarshalLogArray implements zapcore.ArrayMarshaler.
func (as *attempts) MarshalLogArray(enc zapcore.ArrayEncoder) error {
	for i := range as.Attempts {
		as.at = i
		if err := enc.AppendObject((*attempt)(as)); err != nil {
			return err
		}
	}
	return nil
}

// attempt is one of them.
type attempt jobLine

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l *attempt) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	a := &l.Attempts[l.at]
	enc.AddString("upstream", a.Upstream)
	enc.AddString("outcome", a.Outcome.String())
	enc.AddString("cache", a.Cache.String())
	enc.AddByteString("why", a.AppendWhy(l.room[:0]))
	enc.AddFloat64("seconds", (a.End - a.Start).Seconds())
	if h := a.Hint; h != nil { // what the upstream says of the job itself
		if h.Waited >= 0 {
			enc.AddFloat64("upstream_wait_seconds", h.Waited.Seconds())
		}
		if h.Fetched >= 0 {
			enc.AddFloat64("upstream_fetch_seconds", h.Fetched.Seconds())
		}
		if h.Known {
			enc.AddBool("upstream_cached", h.Cached)
		}
	}
	if a.Repeated {
		enc.AddBool("repeated", true)
	}
	if a.Err != nil {
		enc.AddString("error", a.Err.Error())
	}
	return nil
}
