package main

import (
	"encoding/hex"
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

// A job that is traced leaves a span, and one for each attempt below it; its upstream
// is told of the job's. A reload ends the tracing.
func TestJobsAreTraced(t *testing.T) {
	var mu sync.Mutex
	var spans []*otlp.Span
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(text, &sent)) {
			mu.Lock()
			defer mu.Unlock()
			spans = append(spans, sent.ResourceSpans[0].ScopeSpans[0].Spans...)
		}
	}))
	defer receiver.Close()
	told := make(chan string, 2)
	upstream := fakeupstream.New(t, fakeupstream.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			told <- r.Header.Get("Traceparent")
		}
	})})
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Discovery.Static = []string{upstream.Address()}
	cfg.Tracing.Endpoint, cfg.Tracing.Share = receiver.URL, 0
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.ready() == nil }, patience, time.Millisecond)
	submit := func() string {
		r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/jobs", strings.NewReader(`{"project_id": 7}`))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		response, err := dialing(t, p.jobs).Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return <-told
	}
	traced := submit()
	require.Eventually(t, func() bool { return s.open.Load() == 0 }, patience, time.Millisecond, "the job's record is whole")
	cfg.Tracing.Endpoint = ""
	requireReload(t, s, &cfg) // which sends what is left
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, spans, 2)
	attempt, job := spans[0], spans[1]
	assert.Equal(t, []string{"attempt", "job"}, []string{attempt.Name, job.Name})
	assert.Equal(t, job.SpanId, attempt.ParentSpanId)
	assert.Equal(t, "00-"+hex.EncodeToString(job.TraceId)+"-"+hex.EncodeToString(job.SpanId)+"-01", traced)
	assert.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(job.TraceId))
	assert.Equal(t, "b7ad6b7169203331", hex.EncodeToString(job.ParentSpanId))
	assert.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", submit(), "passed on as it came")
}
