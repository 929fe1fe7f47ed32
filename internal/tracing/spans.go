package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Ended makes the spans of a job that has ended, if it was marked.
func (t *Tracer) Ended(r *record.Job) {
	if t == nil || r.Span == nil {
		return
	}
	provider := t.provider.Load()
	if provider == nil {
		return
	}
	tracer := provider.Tracer("pilotfish")
	ctx := context.WithValue(context.Background(), chosen{}, r.Span)
	if parent := trace.SpanID(r.Span.Parent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: r.Span.Trace, SpanID: parent, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	ctx, job := tracer.Start(ctx, "job", trace.WithTimestamp(r.Arrived), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(describe(r)...))
	ctx = context.WithValue(ctx, chosen{}, (*record.Span)(nil)) // the attempts' identifiers are nobody's yet
	for i := range r.Attempts {
		t.attempt(ctx, tracer, r.Arrived, &r.Attempts[i])
	}
	if r.Outcome != intake.Answered && r.Outcome != intake.Gone {
		job.SetStatus(codes.Error, reason(r.Err))
	}
	job.End(trace.WithTimestamp(r.Arrived.Add(r.Total)))
}

// attempt makes the span of one attempt.
func (t *Tracer) attempt(ctx context.Context, tracer trace.Tracer, arrived time.Time, a *record.Attempt) {
	_, span := tracer.Start(ctx, "attempt", trace.WithTimestamp(arrived.Add(a.Start)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(choice(a)...))
	if a.Outcome != pool.Answered && a.Outcome != pool.Gone {
		span.SetStatus(codes.Error, reason(a.Err))
	}
	span.End(trace.WithTimestamp(arrived.Add(max(a.Start, a.End))))
}

// reason is an error in a few words; "" if there is none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return text[:min(len(text), maxValue)]
}

// describe is what a job's span says of it.
func describe(r *record.Job) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("pilotfish.id", r.ID),
		attribute.String("pilotfish.priority", r.Facts.Priority.String()),
		attribute.String("pilotfish.read", r.Read.String()),
		attribute.String("pilotfish.outcome", r.Outcome.String()),
		attribute.String("pilotfish.completeness", r.Completeness.String()),
		attribute.Int("http.response.status_code", r.Status),
		attribute.Float64("pilotfish.queued_seconds", r.Queued.Seconds()),
		attribute.Int64("pilotfish.response_bytes", r.Bytes),
	}
	if r.Completeness != intake.Absent {
		all = append(all, attribute.Float64("pilotfish.first_byte_seconds", r.TTFB.Seconds()))
	}
	for _, text := range []struct{ key, value string }{
		{"pilotfish.project", r.Facts.Project.String()}, {"pilotfish.session", r.Facts.Session.String()}, {"pilotfish.reason", r.Reason},
	} {
		if text.value != "" {
			all = append(all, attribute.String(text.key, text.value))
		}
	}
	return all
}

// choice is what an attempt's span says of where it went, and why. Costs are in seconds.
func choice(a *record.Attempt) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("server.address", a.Upstream),
		attribute.String("pilotfish.cache", a.Cache.String()),
		attribute.String("pilotfish.outcome", a.Outcome.String()),
		attribute.Float64("pilotfish.cost", a.Cost.Total),
		attribute.Float64("pilotfish.cost.wait", a.Cost.Wait),
		attribute.Float64("pilotfish.cost.fetch", a.Cost.Fetch),
		attribute.Float64("pilotfish.cost.placement", a.Cost.Placement),
		attribute.Float64("pilotfish.cost.stop", a.Cost.Stop),
	}
	if a.RunnerUp != "" {
		all = append(all, attribute.String("pilotfish.runner_up", a.RunnerUp), attribute.Float64("pilotfish.runner_up.cost", a.RunnerUpCost))
	}
	if a.Panic {
		all = append(all, attribute.Bool("pilotfish.panic", true))
	}
	if a.Repeated {
		all = append(all, attribute.Bool("pilotfish.repeated", true))
	}
	if h := a.Hint; h != nil && h.Waited >= 0 {
		all = append(all, attribute.Float64("pilotfish.upstream_wait_seconds", h.Waited.Seconds()))
	}
	return all
}
