package tracing

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Ended ends the span of a job, and makes those of its attempts.
func Ended(r *record.Job) {
	job, traced := r.Span.(trace.Span)
	if !traced {
		return
	}
	ctx, tracer := trace.ContextWithSpan(context.Background(), job), job.TracerProvider().Tracer("pilotfish")
	for i := range r.Attempts {
		attempt(ctx, tracer, r.Arrived, &r.Attempts[i])
	}
	job.SetAttributes(attributes(r.Fields)...)
	if r.Failed() {
		job.SetStatus(codes.Error, settings.Cut(r.Err, maxValue))
	}
	job.End(trace.WithTimestamp(r.Arrived.Add(r.Total)))
}

func attempt(ctx context.Context, tracer trace.Tracer, arrived time.Time, a *record.Attempt) {
	fields := func(e zapcore.ObjectEncoder) { _ = a.MarshalLogObject(e) } // it always returns nil
	_, span := tracer.Start(ctx, "attempt", trace.WithTimestamp(arrived.Add(a.Start)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes(fields)...))
	if a.Outcome != pool.Answered && a.Outcome != pool.Gone {
		span.SetStatus(codes.Error, settings.Cut(a.Err, maxValue))
	}
	span.End(trace.WithTimestamp(arrived.Add(max(a.Start, a.End))))
}

// standard are the names that OpenTelemetry has for members of a line of the log.
var standard = map[string]string{
	"status": "http.response.status_code", "method": "http.request.method", "path": "url.path", "upstream": "server.address",
}

// attributes are the members of a line of the log. Those without a standard name have the prefix of pilotfish.
func attributes(fields func(zapcore.ObjectEncoder)) (all []attribute.KeyValue) {
	e := zapcore.NewMapObjectEncoder()
	fields(e)
	for key, value := range e.Fields {
		name := cmp.Or(standard[key], "pilotfish."+key)
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
