// Package tracing makes spans of the jobs' records, and sends them to a collector of
// OpenTelemetry: one for each job, and below it one for each attempt. A job is only
// marked while it runs; its spans are made when it has ended.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.org/pilotfish/internal/settings"
)

// Settings is the section "tracing" of a configuration file.
type Settings struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, such as
	// http://127.0.0.1:4318. Without a path it is asked at /v1/traces. Empty traces nothing.
	Endpoint string `yaml:"endpoint"`
	// Share is how many of the jobs are traced whose request brings no traceparent: 0.01
	// is each hundredth. Of the others, those that their traceparent marks are.
	Share float64 `yaml:"share"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{Share: 1} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Endpoint != "" {
		f.URL("endpoint", s.Endpoint)
	}
	f.Between("share", s.Share, 0, 1)
}

const (
	// maxValue bounds an attribute, in bytes: submitters choose some of them.
	maxValue = 256
	// flushTime is how long the last spans have to reach the collector.
	flushTime = 3 * time.Second
)

// Tracer traces jobs. A nil one traces nothing. Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	exporter *telling
}

// New returns a Tracer, or nil where the settings want none. version is pilotfish's. failed takes why
// spans could not be sent, once until some are again. Close must follow.
func New(s Settings, version string, failed func(error)) (*Tracer, error) {
	if s.Endpoint == "" {
		return nil, nil
	}
	at, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(at.String()))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxValue
	told := &telling{SpanExporter: exporter, failed: failed}
	return &Tracer{exporter: told, provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(told), // which drops what it cannot send in time
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(s.Share))),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "pilotfish"), attribute.String("service.version", version))),
	)}, nil
}

// Close sends what is left. Jobs that are under way leave no span.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	last, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil {
		t.exporter.tell(err)
	}
}

// Begin begins the span of a job that is to be traced, and tells its upstreams: h is what they
// get. Where it is not, nil comes back and h stays as it is.
func (t *Tracer) Begin(arrived time.Time, h http.Header) any {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	ctx, span := t.provider.Tracer("pilotfish").Start(ctx, "job", trace.WithTimestamp(arrived), trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return nil
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return span
}

// telling is an exporter that tells of failures itself: the SDK would write them to
// standard error.
type telling struct {
	sdktrace.SpanExporter
	failed func(error)
	broken atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter. It is not called by two at a time.
func (e *telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.tell(e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// tell tells of the first failure of a row.
func (e *telling) tell(err error) {
	if before := e.broken.Swap(err != nil); err != nil && !before {
		e.failed(err)
	}
}
