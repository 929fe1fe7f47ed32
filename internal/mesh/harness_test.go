package mesh

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/test/balancing"
)

// patience ends tests that hang.
const patience = 2 * time.Minute

// fixture is a filter over n upstreams behind a gRPC server.
type fixture struct {
	t        testing.TB
	pool     *pool.Pool
	balancer *balancer.Balancer
	budget   *intake.Budget
	cfg      job.Config
	server   *Server
	filter   *Filter
	address  string // of the server
	client   *grpc.ClientConn

	records balancing.Records
	waiting []*envoy // streams of jobs that wait, begun by wait
}

var address = balancing.Address

func newFixture(t testing.TB, n int, change func(*job.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, budget: intake.NewBudget(1<<20, 16<<20)}
	queue := dispatch.DefaultQueue()
	queue.Jobs, queue.Wait = 2, 10*time.Millisecond // tests of waiting jobs set a longer time in the job
	f.balancer, f.pool = balancing.New(t, balancing.Setup{Queue: queue}, balancing.Addresses(n)...)
	reader, err := intake.NewReader(intake.Default())
	require.NoError(t, err)
	f.cfg = job.Config{
		Reader: reader, Budget: f.budget, Claimer: f.balancer, MaxBody: 8 << 20,
		Hint: func(h http.Header, now time.Time) (pool.Hint, error) {
			if h.Get("X-Load") == "" {
				return pool.Hint{}, errors.New("no load")
			}
			return pool.Hint{At: now}, nil
		},
		Found: func(tail []byte) (share float64, ok bool) { return 1, bytes.Contains(tail, []byte("cached_tokens")) },
		Sinks: []func(*record.Job){f.records.Add},
	}
	if change != nil {
		change(&f.cfg)
	}
	f.serve()
	return f
}

// serve starts the server and a client of it.
func (f *fixture) serve() {
	f.t.Helper()
	filter, err := New(f.cfg)
	require.NoError(f.t, err)
	f.filter = filter
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f.t, err)
	f.server = NewServer(ServerConfig{
		Filter: func() (*Filter, func()) { return filter, func() {} }, Budget: f.cfg.Budget, Streams: 100, ErrorLog: log.Default(),
		Ready: func() error {
			if !f.balancer.Ready() {
				return pool.ErrEmpty
			}
			return nil
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- f.server.Serve(l) }()
	f.address = l.Addr().String()
	f.client = f.dial()
	f.t.Cleanup(func() {
		assert.NoError(f.t, f.client.Close())
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		assert.NoError(f.t, f.server.Shutdown(ctx))
		assert.NoError(f.t, <-ended)
		balancing.RequireIdle(f.t, f.balancer)
		assert.Zero(f.t, f.budget.Used(), "bodies are kept")
	})
}

// dial returns another client of the server.
func (f *fixture) dial() *grpc.ClientConn {
	f.t.Helper()
	client, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20), grpc.MaxCallRecvMsgSize(64<<20)))
	require.NoError(f.t, err)
	return client
}

// overload makes the upstreams refuse further jobs, or take them again.
func (f *fixture) overload(on bool) {
	stalled := 0.0
	if on {
		stalled = 1000
	}
	for _, s := range f.balancer.States() {
		f.balancer.Report(s.Address, balancing.Report(stalled))
	}
}

// ended waits for n records and returns the last.
func (f *fixture) ended(n int) *record.Job {
	f.t.Helper()
	return f.records.Wait(f.t, n)[n-1]
}

// envoy is Envoy's end of a stream.
type envoy struct {
	t      testing.TB
	stream ext.ExternalProcessor_ProcessClient
	leave  context.CancelFunc
}

func (f *fixture) envoy() *envoy {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	f.t.Cleanup(cancel)
	stream, err := ext.NewExternalProcessorClient(f.client).Process(ctx)
	require.NoError(f.t, err)
	return &envoy{t: f.t, stream: stream, leave: cancel}
}

func (e *envoy) send(m *ext.ProcessingRequest) {
	e.t.Helper()
	require.NoError(e.t, e.stream.Send(m))
}

func (e *envoy) recv() *ext.ProcessingResponse {
	e.t.Helper()
	m, err := e.stream.Recv()
	require.NoError(e.t, err)
	return m
}

// exchange sends a message, and returns the reply.
func (e *envoy) exchange(m *ext.ProcessingRequest) *ext.ProcessingResponse {
	e.t.Helper()
	e.send(m)
	return e.recv()
}

// body receives the pieces of a request's body, and reports whether its trailers end it.
func (e *envoy) body() (all string, trailers bool) {
	e.t.Helper()
	for {
		m := e.recv()
		if m.GetRequestTrailers() != nil {
			return all, true
		}
		piece := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		require.NotNil(e.t, piece, "%v", m)
		if all += string(piece.GetBody()); piece.GetEndOfStream() {
			return all, false
		}
	}
}

// mode are the body modes of a filter's configuration.
type mode struct {
	request, response modes.ProcessingMode_BodySendMode
}

var (
	bufferedMode = mode{modes.ProcessingMode_BUFFERED, modes.ProcessingMode_NONE}
	duplexMode   = mode{modes.ProcessingMode_FULL_DUPLEX_STREAMED, modes.ProcessingMode_FULL_DUPLEX_STREAMED}
	partialMode  = mode{modes.ProcessingMode_BUFFERED_PARTIAL, modes.ProcessingMode_NONE}
)

// headers is the first message for a POST.
func (m mode) headers(empty bool, more ...string) *ext.ProcessingRequest {
	return &ext.ProcessingRequest{
		Request:        &ext.ProcessingRequest_RequestHeaders{RequestHeaders: httpHeaders(empty, append([]string{":method", "POST"}, more...)...)},
		ProtocolConfig: &ext.ProtocolConfiguration{RequestBodyMode: m.request, ResponseBodyMode: m.response},
	}
}

func httpHeaders(end bool, pairs ...string) *ext.HttpHeaders {
	h := &core.HeaderMap{}
	for i := 0; i < len(pairs); i += 2 {
		h.Headers = append(h.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &ext.HttpHeaders{Headers: h, EndOfStream: end}
}

func requestPart(body string, end bool) *ext.ProcessingRequest {
	return &ext.ProcessingRequest{Request: &ext.ProcessingRequest_RequestBody{RequestBody: &ext.HttpBody{Body: []byte(body), EndOfStream: end}}}
}

func responsePart(body string, end bool) *ext.ProcessingRequest {
	return &ext.ProcessingRequest{Request: &ext.ProcessingRequest_ResponseBody{ResponseBody: &ext.HttpBody{Body: []byte(body), EndOfStream: end}}}
}

// responseHead is the message about a response that the upstream at address served.
func responseHead(address string, end bool, status string, more ...string) *ext.ProcessingRequest {
	m := &ext.ProcessingRequest{Request: &ext.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: httpHeaders(end, append([]string{":status", status}, more...)...),
	}}
	if address != "" {
		m.MetadataContext = metadata(lbNamespace, servedKey, structpb.NewStringValue(address))
	}
	return m
}

func metadata(namespace, key string, value *structpb.Value) *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{namespace: {Fields: map[string]*structpb.Value{key: value}}}}
}

var (
	endOfRequest  = &ext.ProcessingRequest{Request: &ext.ProcessingRequest_RequestTrailers{RequestTrailers: &ext.HttpTrailers{}}}
	endOfResponse = &ext.ProcessingRequest{Request: &ext.ProcessingRequest_ResponseTrailers{ResponseTrailers: &ext.HttpTrailers{}}}
)

// placedAt returns the upstreams in a reply, which names them in a header and in the metadata.
func placedAt(t *testing.T, m *ext.ProcessingResponse) string {
	t.Helper()
	common := m.GetRequestHeaders().GetResponse()
	if common == nil {
		common = m.GetRequestBody().GetResponse()
	}
	set := common.GetHeaderMutation().GetSetHeaders()
	require.GreaterOrEqual(t, len(set), 2, "%v", m)
	assert.Equal(t, "x-request-id", set[len(set)-2].GetHeader().GetKey())
	set = set[len(set)-1:]
	assert.Equal(t, "x-gateway-destination-endpoint", set[0].GetHeader().GetKey())
	assert.Equal(t, core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD, set[0].GetAppendAction(), "a submitter must not choose")
	list := string(set[0].GetHeader().GetRawValue())
	assert.Equal(t, list, m.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"].GetStringValue())
	return list
}

// wait lets n jobs wait for an upstream.
func (f *fixture) wait(n int) {
	f.t.Helper()
	for range n {
		e := f.envoy()
		e.send(duplexMode.headers(false))
		e.send(requestPart(`{"timeouts":{"queue_seconds":60}}`, true))
		f.waiting = append(f.waiting, e)
	}
	require.Eventually(f.t, func() bool {
		_, waiting := f.balancer.Counts()
		return waiting == n
	}, patience, time.Millisecond)
}

// stop ends the server when all streams have ended.
func (f *fixture) stop() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	require.NoError(f.t, f.server.Shutdown(ctx))
}
