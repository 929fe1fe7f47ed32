package tracing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/tracing"
	"example.org/pilotfish/pkg/selection"
)

// receiver accepts spans like a collector.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
	from  []string // the service's attributes
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		var sent collector.ExportTraceServiceRequest
		if !assert.NoError(t, err) || !assert.NoError(t, proto.Unmarshal(text, &sent)) || !assert.Equal(t, "/v1/traces", q.URL.Path) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range sent.ResourceSpans {
			r.from = described(resource.Resource.Attributes)
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// described formats attributes as "key=value".
func described(list []*common.KeyValue) (all []string) {
	for _, a := range list {
		var value any
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			value = v.StringValue
		case *common.AnyValue_IntValue:
			value = v.IntValue
		case *common.AnyValue_DoubleValue:
			value = v.DoubleValue
		case *common.AnyValue_BoolValue:
			value = v.BoolValue
		}
		all = append(all, fmt.Sprintf("%s=%v", a.Key, value))
	}
	return all
}

// open starts a tracer. Its Close sends all spans.
func open(t *testing.T, s tracing.Settings, failed func(error)) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(s, "1.2.3", failed)
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	return tracer
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	parent  = "00-" + traceID + "-b7ad6b7169203331-01"
)

// The variables of OpenTelemetry apply unless the settings have a value. Malformed ones are reported by the standard
// library's slog.
func TestVariables(t *testing.T) {
	r := newReceiver(t)
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_RESOURCE_ATTRIBUTES": "team=a,service.name=b", "OTEL_SERVICE_NAME": "fish",
		"OTEL_TRACES_SAMPLER": "always_off", "OTEL_EXPORTER_OTLP_HEADERS": "authorization", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "x",
	} {
		t.Setenv(name, value)
	}
	ended := func(s tracing.Settings) {
		tracer := open(t, s, func(err error) { t.Error(err) })
		tracing.Ended(&record.Job{Span: tracer.Begin(time.Now(), http.Header{})})
		tracer.Close()
	}
	ended(tracing.Default())
	assert.Empty(t, r.spans, "sampled by the variable")
	t.Setenv("OTEL_TRACES_SAMPLER", "")
	ended(tracing.Default())
	assert.Len(t, r.spans, 1)
	assert.ElementsMatch(t, []string{"team=a", "service.name=fish", "service.version=1.2.3"}, r.from)
	for line := range strings.Lines(log.String()) {
		assert.True(t, json.Valid([]byte(line)), line)
	}
	assert.Contains(t, log.String(), "parse headers")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	assert.Nil(t, open(t, tracing.Settings{Endpoint: r.URL, Share: 1}, nil))
}

func TestSpansOfAJob(t *testing.T) {
	r := newReceiver(t)
	tracer := open(t, tracing.Settings{Endpoint: r.URL, Share: 1}, func(err error) { t.Error(err) })
	h := http.Header{"Traceparent": {parent}, "Tracestate": {"vendor=x"}}
	arrived := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	span := tracer.Begin(arrived, h)
	require.NotNil(t, span)
	assert.Equal(t, "vendor=x", h.Get("Tracestate"))

	job := &record.Job{
		ID: "job-1", Arrived: arrived, Span: span, Status: 200, Outcome: intake.Answered, Completeness: intake.Complete,
		TTFB: 300 * time.Millisecond, Total: time.Second, Bytes: 9,
		Facts: intake.Facts{Priority: selection.High, Project: strings.Repeat("p", 300)},
		Attempts: []record.Attempt{
			{Upstream: "a:1", Outcome: pool.Refused, Err: "connection refused", End: 10 * time.Millisecond, Explanation: pool.Explanation{Cost: selection.Cost{Total: 1, Wait: 0.5}, RunnerUp: "b:1", RunnerUpCost: 2, Panic: true}},
			{Upstream: "b:1", Outcome: pool.Answered, Start: 20 * time.Millisecond, End: time.Second, Cache: selection.Cached, Hint: &pool.Hint{Waited: 40 * time.Millisecond}},
		},
	}
	tracing.Ended(job)
	tracer.Close()

	require.Len(t, r.spans, 3)
	first, second, whole := r.spans[0], r.spans[1], r.spans[2]
	assert.Equal(t, []string{"service.name=pilotfish", "service.version=1.2.3"}, r.from)
	for _, s := range r.spans {
		assert.Equal(t, traceID, fmt.Sprintf("%x", s.TraceId))
	}
	assert.Equal(t, "job", whole.Name)
	assert.Equal(t, fmt.Sprintf("00-%s-%x-01", traceID, whole.SpanId), h.Get("Traceparent"), "upstreams stand below the job")
	assert.Equal(t, "b7ad6b7169203331", fmt.Sprintf("%x", whole.ParentSpanId))
	assert.EqualValues(t, arrived.UnixNano(), whole.StartTimeUnixNano)
	assert.EqualValues(t, arrived.Add(time.Second).UnixNano(), whole.EndTimeUnixNano)
	assert.Equal(t, otlp.Status_STATUS_CODE_UNSET, whole.Status.GetCode())
	assert.Subset(t, described(whole.Attributes), []string{
		"pilotfish.id=job-1", "pilotfish.priority=high", "pilotfish.outcome=answered", "pilotfish.response=complete",
		"http.response.status_code=200", "pilotfish.ttfb_seconds=0.3", "pilotfish.response_bytes=9",
		"pilotfish.project=" + strings.Repeat("p", 256),
	})

	assert.Equal(t, "attempt", first.Name)
	assert.Equal(t, whole.SpanId, first.ParentSpanId)
	assert.Equal(t, whole.SpanId, second.ParentSpanId)
	assert.NotEqual(t, first.SpanId, second.SpanId)
	assert.Equal(t, "connection refused", first.Status.Message)
	assert.Equal(t, otlp.Status_STATUS_CODE_ERROR, first.Status.Code)
	assert.ElementsMatch(t, []string{
		"server.address=a:1", "pilotfish.cache=none", "pilotfish.outcome=refused", "pilotfish.seconds=0.01", "pilotfish.error=connection refused",
		"pilotfish.why=cost=1.000 wait=0.500 fetch=0.000 placement=0.000 stop=0.000 runner_up=b:1 runner_up_cost=2.000 panic",
	}, described(first.Attributes))
	assert.EqualValues(t, arrived.Add(20*time.Millisecond).UnixNano(), second.StartTimeUnixNano)
	assert.Equal(t, otlp.Status_STATUS_CODE_UNSET, second.Status.GetCode())
	assert.ElementsMatch(t, []string{
		"server.address=b:1", "pilotfish.cache=cached", "pilotfish.outcome=answered", "pilotfish.seconds=0.98",
		"pilotfish.why=cost=0.000 wait=0.000 fetch=0.000 placement=0.000 stop=0.000",
		"pilotfish.upstream_wait_seconds=0.04", "pilotfish.upstream_fetch_seconds=0",
	}, described(second.Attributes))
}

// A submitter's traceparent decides whether a job is traced; without one the share does.
// Headers of other jobs are forwarded unchanged.
func TestSampling(t *testing.T) {
	unsampled := strings.TrimSuffix(parent, "1") + "0"
	for _, c := range []struct {
		name, traceparent string
		share             float64
		traced            bool
	}{
		{"marked", parent, 0, true},
		{"not marked", unsampled, 1, false},
		{"none, all", "", 1, true},
		{"none, none", "", 0, false},
		{"broken", "00-xyz", 0, false},
		{"broken, all", "00-xyz", 1, true},
	} {
		tracer := open(t, tracing.Settings{Endpoint: newReceiver(t).URL, Share: c.share}, func(err error) { t.Error(err) })
		h := http.Header{}
		if c.traceparent != "" {
			h.Set("Traceparent", c.traceparent)
		}
		span := tracer.Begin(time.Now(), h)
		assert.Equal(t, c.traced, span != nil, c.name)
		if c.traced {
			assert.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, h.Get("Traceparent"), c.name)
			assert.Equal(t, c.name == "marked", strings.Contains(h.Get("Traceparent"), traceID), c.name)
		} else {
			assert.Equal(t, c.traceparent, h.Get("Traceparent"), c.name)
		}
		tracer.Close()
		assert.Nil(t, tracer.Begin(time.Now(), h), "nothing is traced after the end")
		tracing.Ended(&record.Job{Span: span}) // this span is not sent either
	}
}

// A collector that accepts nothing is logged once, and delays no job. One that redirects must not make the sidecar send a POST
// to another server, such as the admin port.
func TestACollectorThatRefuses(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("redirected: " + r.Method) }))
	defer elsewhere.Close()
	for want, handler := range map[string]http.Handler{
		"400":                          http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }),
		`/api/reload" is not followed`: http.RedirectHandler(elsewhere.URL+"/api/reload", http.StatusTemporaryRedirect),
	} {
		collector := httptest.NewServer(handler)
		failures := make(chan error, 10)
		tracer := open(t, tracing.Settings{Endpoint: collector.URL, Share: 1}, func(err error) { failures <- err })
		for range 2000 { // several batches
			tracing.Ended(&record.Job{Span: tracer.Begin(time.Now(), http.Header{}), Arrived: time.Now()})
		}
		assert.ErrorContains(t, <-failures, want)
		tracer.Close() // a timeout on a busy machine is possible
		assert.Empty(t, failures)
		collector.Close()
	}
}

func TestNothingIsTraced(t *testing.T) {
	tracer, err := tracing.New(tracing.Default(), "", nil)
	require.NoError(t, err)
	require.Nil(t, tracer)
	tracing.Ended(&record.Job{})
	tracer.Close()
}

// An error that is truncated for a status is truncated between characters: a span with a
// partial character would make the collector reject its batch.
func TestALongError(t *testing.T) {
	r := newReceiver(t)
	tracer := open(t, tracing.Settings{Endpoint: r.URL, Share: 1}, func(err error) { t.Error(err) })
	text := strings.Repeat("x", 252)
	tracing.Ended(&record.Job{Span: tracer.Begin(time.Now(), http.Header{}), Outcome: intake.Failed, Err: text + "élong"})
	tracer.Close()
	require.Len(t, r.spans, 1)
	assert.Equal(t, text+"...", r.spans[0].Status.Message)
}
