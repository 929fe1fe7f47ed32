package mesh

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
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

// So has one that comes in pieces and of which the budget keeps the beginning alone.
func TestTheLargestStream(t *testing.T) {
	const most, piece = 1 << 20, 128 << 10
	f := newFixture(t, 1, func(cfg *job.Config) { cfg.MaxBody, cfg.Budget = most, intake.NewBudget(2*piece, 0) })
	e := f.envoy()
	e.send(duplex.headers(false))
	text := `{"project_id":1,"x":"` + strings.Repeat("x", most)
	go func() { // Envoy takes what comes meanwhile
		for i := range most/piece + 1 {
			_ = e.stream.Send(requestBody(text[i*piece:min((i+1)*piece, len(text))], false))
		}
	}()
	var m *ext.ProcessingResponse
	for passed := 0; m.GetImmediateResponse() == nil; m = e.recv() {
		passed += len(m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody())
		require.LessOrEqual(t, passed, most)
	}
	assert.EqualValues(t, 413, m.GetImmediateResponse().GetStatus().GetCode())
	e.leave()
	assert.Equal(t, intake.TooLarge, f.ended(1).Outcome)
}

// A body that Envoy sends in one message has the bound of all bodies, whether its length is declared or not.
func TestTheLargestMessage(t *testing.T) {
	const most = 1 << 20
	f := newFixture(t, 1, func(cfg *job.Config) { cfg.MaxBody, cfg.Budget = most, intake.NewBudget(32<<20, 0) })
	for i, c := range []struct {
		size     int
		declared bool
		answer   int
	}{{most, false, 0}, {most, true, 0}, {most + 1, false, 413}, {most + 1, true, 413}, {most + 2*maxMargin, false, 413}} {
		e := f.envoy()
		var length []string
		if c.declared {
			length = []string{"content-length", strconv.Itoa(c.size)}
		}
		e.send(buffered.headers(false, length...))
		m := e.recv()
		if m.GetImmediateResponse() == nil {
			body := `{"project_id":1,"x":"` + strings.Repeat("x", c.size-len(`{"project_id":1,"x":""}`)) + `"}`
			_ = e.stream.Send(requestBody(body, true)) // fails when the server has refused it already
			m = e.recv()
		}
		assert.EqualValues(t, c.answer, m.GetImmediateResponse().GetStatus().GetCode())
		if c.answer != 0 {
			assert.Contains(t, string(m.GetImmediateResponse().GetBody()), strconv.Itoa(most))
		}
		e.leave()
		f.ended(i + 1)
	}
	e := f.envoy()
	e.send(duplex.headers(false))
	_ = e.stream.Send(requestBody(strings.Repeat(" ", most+1), true)) // likewise
	assert.EqualValues(t, 413, e.recv().GetImmediateResponse().GetStatus().GetCode(), "also in a stream")
	e.leave()
	f.ended(6)
}

// raw begins a stream by hand: a request of Envoy's for a body that is buffered, and then what the test writes.
func (f *fixture) raw() (body *io.PipeWriter, answer func() *ext.ProcessingResponse) {
	f.t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	f.t.Cleanup(transport.CloseIdleConnections)
	read, write := io.Pipe()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.address+ext.ExternalProcessor_Process_FullMethodName, read)
	require.NoError(f.t, err)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	responses := make(chan *http.Response, 1)
	go func() {
		response, err := transport.RoundTrip(r) //nolint:bodyclose // Cleanup does
		assert.NoError(f.t, err)
		responses <- response
	}()
	head, err := proto.Marshal(buffered.headers(false))
	require.NoError(f.t, err)
	_, err = write.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(head))), head...))
	require.NoError(f.t, err)
	response := <-responses
	f.t.Cleanup(func() { _ = response.Body.Close() })
	answer = func() *ext.ProcessingResponse {
		var prefix [5]byte
		if _, err := io.ReadFull(response.Body, prefix[:]); err != nil {
			return nil
		}
		text := make([]byte, binary.BigEndian.Uint32(prefix[1:]))
		_, err := io.ReadFull(response.Body, text)
		require.NoError(f.t, err)
		m := new(ext.ProcessingResponse)
		require.NoError(f.t, proto.Unmarshal(text, m))
		return m
	}
	require.NotNil(f.t, answer().GetRequestHeaders(), "the body is wanted")
	return write, answer
}

// What has come of a message counts in the budget before it is held. Where there is no
// room, or the message is too long, the stream is refused at once.
func TestHalfMessages(t *testing.T) {
	const room = 4
	f := newFixture(t, 1, func(cfg *job.Config) { cfg.Budget = intake.NewBudget(room<<20, 0) })
	f.budget = f.cfg.Budget
	prefix := func(length int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(length)) }
	var open []*io.PipeWriter
	for range room {
		body, _ := f.raw()
		_, err := body.Write(append(prefix(1<<20), make([]byte, 1000)...))
		require.NoError(t, err)
		open = append(open, body)
	}
	require.Eventually(t, func() bool { return f.budget.Used() == room<<20 }, patience, time.Millisecond)
	body, answer := f.raw()
	_, err := body.Write(prefix(1 << 20))
	require.NoError(t, err)
	refused := answer().GetImmediateResponse()
	assert.EqualValues(t, 503, refused.GetStatus().GetCode())
	assert.Contains(t, string(refused.GetBody()), "no-room")
	assert.Nil(t, answer(), "the stream has ended")

	body, answer = f.raw()
	_, err = body.Write(prefix(64 << 20))
	require.NoError(t, err)
	assert.EqualValues(t, 413, answer().GetImmediateResponse().GetStatus().GetCode())
	f.ended(2)
	for _, body := range open {
		require.NoError(t, body.CloseWithError(io.ErrClosedPipe))
	}
	f.ended(2 + room)
	require.Eventually(t, func() bool { return f.budget.Used() == 0 }, patience, time.Millisecond)
}

// The time of a message ends with it: the next one may come hours later.
func TestTheTimeOfAMessageEndsWithIt(t *testing.T) {
	var until time.Time
	m := &messages{
		body: io.NopCloser(strings.NewReader("\x00\x00\x00\x00\x02ab")), deadline: func(at time.Time) error { until = at; return nil },
		budget: intake.NewBudget(0, 0), most: 2, time: time.Minute, asked: make(chan struct{}, 1),
	}
	m.next()
	var into [16]byte
	n, err := m.Read(into[:])
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	assert.False(t, until.IsZero())
	n, err = m.Read(into[:])
	require.NoError(t, err)
	assert.Equal(t, "ab", string(into[:n]))
	assert.True(t, until.IsZero())
}

// A message that does not come to its end ends its stream.
func TestAMessageHasATime(t *testing.T) {
	f := newFixture(t, 1, nil)
	f.filter.messageTime = time.Second // the message before, which comes whole, has it, too
	body, answer := f.raw()
	_, err := body.Write([]byte{0, 0, 0, 1, 0, 'x'})
	require.NoError(t, err)
	assert.Nil(t, answer())
	j := f.ended(1)
	assert.Equal(t, "slow-body", j.Reason)
	assert.Equal(t, intake.Rejected, j.Outcome)
}

// Envoy is told how many streams a connection may have, and how long their heads may be: net/http adds 320 bytes.
func TestStreamsAreBounded(t *testing.T) {
	f := newFixture(t, 1, nil)
	c, err := net.Dial("tcp", f.address)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	first, err := http2.NewFramer(c, c).ReadFrame()
	require.NoError(t, err)
	told := first.(*http2.SettingsFrame)
	for setting, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 250, http2.SettingMaxHeaderListSize: 64<<10 + 320} {
		got, _ := told.Value(setting)
		assert.Equal(t, want, got, setting)
	}
}

// The end of the process cuts the streams that are left when its time is over.
func TestShutdownCutsWhatIsLeft(t *testing.T) {
	f := newFixture(t, 1, nil)
	e := f.envoy()
	e.send(buffered.headers(true))
	e.recv()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, f.server.Shutdown(ctx), "streams of Envoy were cut")
	_, err := e.stream.Recv()
	assert.Error(t, err)
	f.ended(1)
	inFlight, _ := f.balancer.Counts()
	assert.Zero(t, inFlight)
}
