// Package tracing sends spans to an OpenTelemetry collector: one for each job, and a child of it
// for each attempt. They are made from the job's record when it has ended.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.org/pilotfish/internal/httpclient"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "tracing" of a configuration file.
type Settings struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, such as
	// http://127.0.0.1:4318. The default path is /v1/traces. If it is empty, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
	// OTEL_EXPORTER_OTLP_ENDPOINT is used; without any, nothing is traced.
	Endpoint string `yaml:"endpoint"`
	// Share is the sampling rate of jobs without a traceparent, from 0 to 1. A job with a traceparent is
	// traced if the traceparent is marked as sampled. With 1, OTEL_TRACES_SAMPLER applies if it is set.
	Share float64 `yaml:"share"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{Share: 1} }

// Check reports invalid settings to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Endpoint != "" {
		f.URL("endpoint", s.Endpoint)
	}
	f.Between("share", s.Share, 0, 1)
}

const (
	// maxValue bounds an attribute, in bytes: submitters choose some of them.
	maxValue = 256
	// flushTime bounds the export of the last spans at shutdown.
	flushTime = 3 * time.Second
)

// Tracer traces jobs. Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	exporter *reporting
}

// New returns a Tracer, or nil if neither the settings nor the environment name a collector. version is pilotfish's.
// failed is called with the reason why spans could not be sent, once until some are sent again. Close must follow.
//
// The environment variables OTEL_* of OpenTelemetry apply to everything that the settings leave open.
func New(s Settings, version string, failed func(error)) (*Tracer, error) {
	exporting := []otlptracehttp.Option{otlptracehttp.WithProxy(httpclient.Proxy)}
	switch {
	case os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none":
		return nil, nil
	case s.Endpoint != "":
		at, err := url.Parse(s.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("tracing: %w", err)
		}
		if at.Path == "" || at.Path == "/" {
			at.Path = "/v1/traces"
		}
		exporting = append(exporting, otlptracehttp.WithEndpointURL(at.String()))
	case cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "":
		return nil, nil
	}
	logger := logr.FromSlogHandler(slog.Default().Handler())
	otel.SetLogger(logger)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error(err, "OpenTelemetry") }))
	exporter, err := otlptracehttp.New(context.Background(), exporting...)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	if n := limits.AttributeValueLengthLimit; n < 0 || n > maxValue {
		limits.AttributeValueLengthLimit = maxValue
	}
	from, err := resource.New(context.Background(), resource.WithAttributes(
		attribute.String("service.name", "pilotfish"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		logger.Error(err, "OTEL_RESOURCE_ATTRIBUTES is malformed") // its valid part is used
	}
	reported := &reporting{SpanExporter: exporter, failed: failed}
	providing := []sdktrace.TracerProviderOption{
		sdktrace.WithBatcher(reported), // which drops what it cannot send in time
		sdktrace.WithRawSpanLimits(limits), sdktrace.WithResource(from),
	}
	if s.Share < 1 || os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		providing = append(providing, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(s.Share))))
	}
	return &Tracer{exporter: reported, provider: sdktrace.NewTracerProvider(providing...)}, nil
}

// Close sends the remaining spans. A nil Tracer has none. Open jobs get no span.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	last, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil {
		t.exporter.report(err)
	}
}

// Begin starts the span of a sampled job and sets the traceparent of its requests' headers, h. For a job that is not
// sampled it returns nil and does not change h.
func (t *Tracer) Begin(arrived time.Time, h http.Header) any {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	ctx, span := t.provider.Tracer("pilotfish").Start(ctx, "job", trace.WithTimestamp(arrived), trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return nil
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return span
}

// reporting is an exporter that reports its failures once, not for each batch.
type reporting struct {
	sdktrace.SpanExporter
	failed func(error)
	broken atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter. It is not called concurrently.
func (e *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.report(e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// report reports the first failure in a row.
func (e *reporting) report(err error) {
	if before := e.broken.Swap(err != nil); err != nil && !before {
		e.failed(err)
	}
}
