package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/pkg/fakeupstream"
)

// A traced job has a span, with a child for each attempt. Its upstream receives the job's span in
// Traceparent.
func TestJobsAreTraced(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // in milliseconds: spans are exported at once
	spans := make(chan []*otlp.Span, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(text, &sent)) {
			spans <- sent.ResourceSpans[0].ScopeSpans[0].Spans
		}
	}))
	defer receiver.Close()
	upstream := fakeupstream.New(t, fakeupstream.Options{Handler: http.NotFoundHandler()})
	cfg := before(upstream.Address())
	cfg.Tracing.Endpoint, cfg.Tracing.Share = receiver.URL, 0
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.refusal() == nil }, patience, time.Millisecond)
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	post(t, p.Jobs, "localhost", "Traceparent", theirs)
	received := upstream.Jobs()[0].Header.Get("Traceparent")
	var both []*otlp.Span
	for len(both) < 2 {
		both = append(both, <-spans...)
	}
	attempt, job := both[0], both[1]
	assert.Equal(t, []string{"attempt", "job"}, []string{attempt.Name, job.Name})
	assert.Equal(t, job.SpanId, attempt.ParentSpanId)
	assert.Equal(t, fmt.Sprintf("00-%x-%x-01", job.TraceId, job.SpanId), received)
	assert.Equal(t, theirs, fmt.Sprintf("00-%x-%x-01", job.TraceId, job.ParentSpanId))
	assert.Empty(t, spans)
}
