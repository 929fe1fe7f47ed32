package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/pkg/fakeupstream"
)

// receiver takes spans as a collector does.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
}

func newReceiver(t *testing.T) *receiver {
	c := &receiver{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(text, &sent)) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.spans = append(c.spans, sent.ResourceSpans[0].ScopeSpans[0].Spans...)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// take returns the first n spans as soon as they have come.
func (c *receiver) take(t *testing.T, n int) (spans []*otlp.Span) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		spans = c.spans
		return len(spans) >= n
	}, patience, time.Millisecond)
	return spans
}

// traced makes a configuration trace the jobs of whoever asks for it. Spans are sent at
// once: those that are left at a reload have little time.
func (c *receiver) traced(t *testing.T, cfg *config.Config) {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // in milliseconds
	cfg.Tracing.Endpoint, cfg.Tracing.Share = c.URL, 0
}

// traceparent of a span, as upstreams are told it.
func traceparent(s *otlp.Span) string { return fmt.Sprintf("00-%x-%x-01", s.TraceId, s.SpanId) }

const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A job that is traced leaves a span, and one for each attempt below it; its upstream
// is told of the job's. A reload ends the tracing.
func TestJobsAreTraced(t *testing.T) {
	receiver := newReceiver(t)
	told := make(chan string, 2)
	upstream := fakeupstream.New(t, fakeupstream.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			told <- r.Header.Get("Traceparent")
		}
	})})
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Discovery.Static = []string{upstream.Address()}
	receiver.traced(t, &cfg)
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.refusal() == nil }, patience, time.Millisecond)
	submit := func() string {
		r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/jobs", strings.NewReader(`{"project_id": 7}`))
		require.NoError(t, err)
		r.Header.Set("Traceparent", theirs)
		response, err := dialing(t, p.Jobs).Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return <-told
	}
	traced := submit()
	spans := receiver.take(t, 2)
	cfg.Tracing.Endpoint = ""
	requireReload(t, s, &cfg)
	attempt, job := spans[0], spans[1]
	assert.Equal(t, []string{"attempt", "job"}, []string{attempt.Name, job.Name})
	assert.Equal(t, job.SpanId, attempt.ParentSpanId)
	assert.Equal(t, traceparent(job), traced)
	assert.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(job.TraceId))
	assert.Equal(t, "b7ad6b7169203331", hex.EncodeToString(job.ParentSpanId))
	assert.Equal(t, theirs, submit(), "passed on as it came")
	assert.Len(t, receiver.take(t, 2), 2)
}
