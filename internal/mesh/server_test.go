package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/mesh/h2"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

func TestHealth(t *testing.T) {
	const yes, no = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	f := newFixture(t, 1, nil)
	client := grpc_health_v1.NewHealthClient(f.client)
	service := func(name string) grpc_health_v1.HealthCheckResponse_ServingStatus {
		r, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		require.NoError(t, err)
		return r.GetStatus()
	}
	for _, name := range []string{"", "liveness", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"} {
		assert.Equal(t, yes, service(name), name)
	}
	f.balancer.Set(nil)
	for _, name := range []string{"", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"} {
		assert.Equal(t, no, service(name), name)
	}
	assert.Equal(t, yes, service("liveness"), "the process is alive without upstreams")
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"})
	assert.Equal(t, codes.NotFound, status.Code(err))
}

// A body in pieces has the bound of all bodies, also if the budget keeps only its beginning. Then what is received and not
// read counts in the budget, too.
func TestTheLargestStream(t *testing.T) {
	const most, piece = 1 << 20, 128 << 10
	for budget, want := range map[int64]struct {
		status  int
		outcome intake.Outcome
	}{2*piece + 1<<10: {503, intake.Shed}, 2*piece + 1<<10 + h2.StreamWindow: {413, intake.TooLarge}} {
		f := newFixture(t, 1, func(cfg *job.Config) { cfg.MaxBody, cfg.Budget = most, intake.NewBudget(budget, 0) })
		e := f.envoy()
		e.send(duplexMode.headers(false))
		text := `{"project_id":1,"x":"` + strings.Repeat("x", most)
		go func() { // while the test receives
			for i := range most/piece + 1 {
				_ = e.stream.Send(requestPart(text[i*piece:min((i+1)*piece, len(text))], false))
			}
		}()
		var m *ext.ProcessingResponse
		for passed := 0; m.GetImmediateResponse() == nil; m = e.recv() {
			passed += len(m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody())
			require.LessOrEqual(t, passed, most)
		}
		assert.EqualValues(t, want.status, m.GetImmediateResponse().GetStatus().GetCode())
		e.leave()
		assert.Equal(t, want.outcome, f.ended(1).Outcome)
	}
}

// A body in one message has the bound of all bodies, with a declared length or without.
func TestTheLargestMessage(t *testing.T) {
	const most = 1 << 20
	f := newFixture(t, 1, func(cfg *job.Config) { cfg.MaxBody, cfg.Budget = most, intake.NewBudget(32<<20, 0) })
	for i, c := range []struct {
		mode     mode
		size     int
		declared bool
		status   int
	}{
		{bufferedMode, most, false, 0}, {bufferedMode, most, true, 0}, {bufferedMode, most + 1, false, 413}, {bufferedMode, most + 1, true, 413},
		{bufferedMode, most + 2*maxHead, false, 413}, {duplexMode, most + 1, false, 413},
	} {
		e := f.envoy()
		var length []string
		if c.declared {
			length = []string{"content-length", strconv.Itoa(c.size)}
		}
		e.send(c.mode.headers(false, length...))
		body := `{"project_id":1,"x":"` + strings.Repeat("x", c.size-len(`{"project_id":1,"x":""}`)) + `"}`
		_ = e.stream.Send(requestPart(body, true)) // fails if the server has refused it already
		m := e.recv()
		if m.GetRequestHeaders() != nil {
			m = e.recv()
		}
		assert.EqualValues(t, c.status, m.GetImmediateResponse().GetStatus().GetCode(), "%+v", c)
		if c.status != 0 {
			assert.Contains(t, string(m.GetImmediateResponse().GetBody()), strconv.Itoa(most))
		}
		e.leave()
		f.ended(i + 1)
	}
}

// A stream is read message by message. The timeout of a message ends with it: the next one can be sent hours later. A
// message counts in the budget before its body is received.
func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pieces []string
			pause  time.Duration
			want   error
		}{
			{[]string{"\x00\x00\x00\x00\x02ab", "\x00\x00\x00\x00\x01c"}, time.Hour, nil},
			{[]string{"\x00\x00\x00", "\x00\x01c", "\x00\x00\x00\x00\x01d"}, 29 * time.Second, nil},
			{[]string{"\x00\x00\x00", "\x00\x01c"}, 31 * time.Second, record.ErrSlow},
			{[]string{"\x01\x00\x00\x00\x01c"}, 0, errCompressed},
			{[]string{"\x00\x00\x00\x00\x02c"}, 0, io.ErrUnexpectedEOF},
			{[]string{"\x00\x00\x00\x80\x01c"}, 0, intake.ErrTooLarge},
			{[]string{"\x00\x00\x00\x40\x01c"}, time.Minute, intake.ErrNoRoom},
			{[]string{"\x00\x00\x00\x20\x00a", strings.Repeat("x", 8191)}, 31 * time.Second, record.ErrSlow},
			{[]string{"\x00\x00\x00\x20\x00a", strings.Repeat("x", 8191)}, 29 * time.Second, nil},
		} {
			read, write := io.Pipe()
			go func() {
				for _, p := range c.pieces {
					_, _ = io.WriteString(write, p)
					time.Sleep(c.pause)
				}
				_ = write.Close()
			}()
			budget := intake.NewBudget(newStreamBytes, 0)
			s := &stream{transport: received{PipeReader: read}, budget: budget, times: streamTimes}
			require.NoError(t, s.open())
			var err error
			for err == nil {
				_, err = s.receive(32<<10, 1)
			}
			if c.want == nil {
				c.want = io.EOF
			}
			assert.ErrorIs(t, err, c.want, "%q", c.pieces)
			s.close()
			assert.Zero(t, budget.Used(), "%q", c.pieces)
			_ = read.Close()
			synctest.Wait()
		}
	})
}

// received is a stream that is only read.
type received struct {
	transport
	*io.PipeReader
}

func (r received) Abort(error) { _ = r.Close() }

func (r received) Read(p []byte) (int, error) {
	n, err := r.PipeReader.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = record.ErrSlow
	}
	return n, err
}

// A stream counts in the budget and has a timeout until its first message. It is refused where the budget or the
// number of streams is exhausted.
func TestStreamsWithoutAMessage(t *testing.T) {
	f := newFixture(t, 1, nil)
	f.server.times.first = 100 * time.Millisecond
	refused := func(want codes.Code) {
		t.Helper()
		_, err := f.envoy().stream.Recv()
		assert.Equal(t, want, status.Code(err))
		require.Eventually(t, func() bool { return len(f.server.open) == 0 || want == codes.ResourceExhausted }, patience, time.Millisecond)
	}
	refused(codes.DeadlineExceeded)
	rest := f.budget.All() - newStreamBytes + 1
	require.NoError(t, f.budget.Reserve(rest))
	refused(codes.ResourceExhausted)
	f.budget.Return(rest)
	for range cap(f.server.open) {
		f.server.open <- struct{}{}
	}
	refused(codes.ResourceExhausted)
	for range cap(f.server.open) {
		<-f.server.open
	}
	f.stop()
	assert.Empty(t, f.records.All(), "none was a job")
}

// What Envoy sends besides bodies is bounded, in bytes and in number, before it is decoded.
func TestHeadsAreBounded(t *testing.T) {
	headers := func(n, size int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("h%d", i), strings.Repeat("x", size))
		}
		return all
	}
	list := func(n int) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: slices.Repeat([]*structpb.Value{structpb.NewStringValue("a:1")}, n)})
	}
	for name, c := range map[string]struct {
		headers []string
		subset  *structpb.Value
		want    codes.Code
	}{
		"as many headers":        {headers(maxHeaderLines-1, 1), nil, codes.OK},
		"many headers":           {headers(maxHeaderLines, 1), nil, codes.InvalidArgument},
		"large headers":          {headers(64, maxHead/64), nil, codes.ResourceExhausted},
		"a large header":         {headers(1, maxHead), nil, codes.ResourceExhausted},
		"many addresses, a list": {nil, list(maxSubset + 1), codes.InvalidArgument},
		"many addresses, a text": {nil, structpb.NewStringValue(strings.Repeat("a,", maxSubset+1)), codes.InvalidArgument},
		"a large address":        {nil, structpb.NewStringValue(strings.Repeat("a", 1<<20)), codes.ResourceExhausted},
		"many more addresses":    {nil, list(50_000), codes.ResourceExhausted},
	} {
		f := newFixture(t, 1, func(c *job.Config) { c.Budget = intake.NewBudget(8<<20, 0) })
		f.budget = f.cfg.Budget
		e := f.envoy()
		first := bufferedMode.headers(true, c.headers...)
		if c.subset != nil {
			first.MetadataContext = metadata(subsetNamespace, subsetKey, c.subset)
		}
		_ = e.stream.Send(first) // fails where the server has refused it already
		_, err := e.stream.Recv()
		assert.Equal(t, c.want, status.Code(err), name)
		e.leave()
	}
}

// Texts that Envoy chooses are stored with at most 512 bytes.
func TestStoredTextsAreCut(t *testing.T) {
	f := newFixture(t, 1, nil)
	long := strings.Repeat("x", 100<<10)
	e := f.envoy()
	e.exchange(bufferedMode.headers(false, "content-type", "application/json", "x-gateway-inference-fairness-id", long, "x-request-id", long))
	e.exchange(requestPart(posted, true))
	assert.Equal(t, settings.Cut(long, settings.MaxText), f.balancer.Projects(time.Now(), 1)[0].Name)
	e.exchange(responseHead(long, true, "200"))
	require.NoError(t, e.stream.CloseSend())
	j := f.ended(1)
	assert.Equal(t, long[:settings.MaxText], j.Attempts[1].Upstream)
	assert.LessOrEqual(t, len(j.ID), settings.MaxText)
}

// A message that is not completed in time ends its stream.
func TestMessageTimeout(t *testing.T) {
	f := newFixture(t, 1, nil)
	f.server.times.message = time.Second // also for the message before, which arrives whole
	head, err := proto.Marshal(bufferedMode.headers(false))
	require.NoError(t, err)
	read, write := io.Pipe()
	defer write.Close()
	go func() {
		_, _ = write.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(head))), head...))
		_, _ = write.Write([]byte{0, 0, 0, 1, 0, 'x'}) // a client of gRPC sends whole messages
	}()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+f.address+processMethod, read)
	require.NoError(t, err)
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(all), "urn:pilotfish:problem:slow-body")
	j := f.ended(1)
	assert.Equal(t, []any{408, "slow-body", intake.Rejected}, []any{j.Status, j.Reason, j.Outcome})
}

// Shutdown aborts the streams that are still open when its context ends.
func TestShutdownAbortsStreams(t *testing.T) {
	f := newFixture(t, 1, nil)
	e := f.envoy()
	e.exchange(bufferedMode.headers(true))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, f.server.Shutdown(ctx), "streams of Envoy were aborted")
	_, err := e.stream.Recv()
	assert.Error(t, err)
	f.ended(1)
	inFlight, _ := f.balancer.Counts()
	assert.Zero(t, inFlight)
}
