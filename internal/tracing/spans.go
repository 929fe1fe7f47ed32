package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"

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
	ctx, job := tracer.Start(ctx, "job", trace.WithTimestamp(r.Arrived), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes(r.Fields)...))
	ctx = context.WithValue(ctx, chosen{}, (*record.Span)(nil)) // the attempts' identifiers are nobody's yet
	for i := range r.Attempts {
		attempt(ctx, tracer, r.Arrived, &r.Attempts[i])
	}
	if r.Failed() {
		job.SetStatus(codes.Error, short(r.Err))
	}
	job.End(trace.WithTimestamp(r.Arrived.Add(r.Total)))
}

// attempt makes the span of one attempt.
func attempt(ctx context.Context, tracer trace.Tracer, arrived time.Time, a *record.Attempt) {
	fields := func(e zapcore.ObjectEncoder) { _ = a.MarshalLogObject(e) } // it always returns nil
	_, span := tracer.Start(ctx, "attempt", trace.WithTimestamp(arrived.Add(a.Start)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes(fields)...))
	if a.Outcome != pool.Answered && a.Outcome != pool.Gone {
		span.SetStatus(codes.Error, short(a.Err))
	}
	span.End(trace.WithTimestamp(arrived.Add(max(a.Start, a.End))))
}

// short is a text in as many bytes as the description of a status may have.
func short(text string) string { return text[:min(len(text), maxValue)] }

// attributes are the members of a line of the log. Those that OpenTelemetry names have its
// names, all others the prefix of pilotfish.
func attributes(fields func(zapcore.ObjectEncoder)) (all []attribute.KeyValue) {
	e := zapcore.NewMapObjectEncoder()
	fields(e)
	for key, value := range e.Fields {
		name := "pilotfish." + key
		switch key {
		case "status":
			name = "http.response.status_code"
		case "method":
			name = "http.request.method"
		case "path":
			name = "url.path"
		case "upstream":
			name = "server.address"
		}
		switch v := value.(type) {
		case string:
			if v != "" {
				all = append(all, attribute.String(name, v))
			}
		case int64:
			all = append(all, attribute.Int64(name, v))
		case float64:
			all = append(all, attribute.Float64(name, v))
		case bool:
			all = append(all, attribute.Bool(name, v))
		}
	}
	return all
}
