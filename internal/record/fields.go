package record

import (
	"time"

	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/intake"
)

// This file declares the fields of a job's log line. Spans have the same fields as attributes
// (internal/tracing), and docs/operate.md documents them.

// MarshalLogObject writes the job's log line.
func (r *Job) MarshalLogObject(e zapcore.ObjectEncoder) error {
	r.Fields(e)
	return e.AddArray("attempts", (*attemptsOf)(r))
}

// Fields writes all fields except the attempts. Fields that do not apply to the job are omitted.
func (r *Job) Fields(e zapcore.ObjectEncoder) {
	e.AddString("id", r.ID)
	addText(e, "method", clean(r.Method))
	addText(e, "path", clean(r.Path))
	addText(e, "peer", r.Peer)
	e.AddString("session", r.Facts.Session)
	e.AddString("project", r.Facts.Project)
	e.AddString("priority", r.Facts.Priority.String())
	e.AddString("read", r.Read.String())
	e.AddString("outcome", r.Outcome.String())
	e.AddInt64("status", int64(r.Status))
	e.AddFloat64("queue_seconds", r.Queued.Seconds())
	if r.Completeness != intake.Absent {
		e.AddFloat64("ttfb_seconds", r.TTFB.Seconds())
	}
	e.AddFloat64("total_seconds", r.Total.Seconds())
	addSeconds(e, "queue_timeout_seconds", r.Facts.Queue)
	addSeconds(e, "first_byte_timeout_seconds", r.Facts.Evaluate)
	addSeconds(e, "stream_timeout_seconds", r.Facts.Stream)
	e.AddInt64("body_bytes", r.Body)
	e.AddInt64("response_bytes", r.Bytes)
	e.AddString("response", r.Completeness.String())
	addFlag(e, "prefetch", r.Facts.Prefetch)
	addText(e, "unread", r.Unread)
	addText(e, "reason", r.Reason)
	addFlag(e, "unframed", r.Unframed)
	addFlag(e, "replay_disabled", r.Unkept)
	addFlag(e, "retry_refused", r.RetryRefused)
	addText(e, "error", r.Err)
}

// MarshalLogObject writes one attempt: its result, and the reasons for the choice of its upstream.
func (a *Attempt) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("upstream", a.Upstream)
	e.AddString("outcome", a.Outcome.String())
	e.AddString("cache", a.Cache.String())
	var room [128]byte
	e.AddString("why", string(a.AppendWhy(room[:0])))
	e.AddFloat64("seconds", (a.End - a.Start).Seconds())
	if h := a.Hint; h != nil { // the upstream's report about this job
		if h.Waited >= 0 {
			e.AddFloat64("upstream_wait_seconds", h.Waited.Seconds())
		}
		if h.Fetched >= 0 {
			e.AddFloat64("upstream_fetch_seconds", h.Fetched.Seconds())
		}
		if h.Known {
			e.AddBool("upstream_cached", h.Cached)
		}
	}
	addText(e, "error", a.Err)
	return nil
}

// attemptsOf marshals the attempts of a job as an array.
type attemptsOf Job

func (r *attemptsOf) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for i := range r.Attempts {
		if err := e.AppendObject(&r.Attempts[i]); err != nil {
			return err
		}
	}
	return nil
}

func addText(e zapcore.ObjectEncoder, key, value string) {
	if value != "" {
		e.AddString(key, value)
	}
}

func addFlag(e zapcore.ObjectEncoder, key string, value bool) {
	if value {
		e.AddBool(key, true)
	}
}

func addSeconds(e zapcore.ObjectEncoder, key string, value time.Duration) {
	if value > 0 {
		e.AddFloat64(key, value.Seconds())
	}
}
