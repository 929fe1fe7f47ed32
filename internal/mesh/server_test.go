package mesh

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

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

// A body may be as large as job.max_body says and Envoy sends it in one message.
func TestTheLargestMessage(t *testing.T) {
	f := newFixture(t, 1, nil)
	for i, c := range []struct {
		size   int64
		status codes.Code
		answer int
	}{
		{f.cfg.MaxBody, codes.OK, 0},
		{f.cfg.MaxBody + 1, codes.OK, 413},
		{f.cfg.MaxBody + 2*maxMargin, codes.ResourceExhausted, 0},
	} {
		e := f.envoy()
		e.send(buffered.headers(false))
		e.recv()
		body := `{"project_id":1,"x":"` + strings.Repeat("x", int(c.size)-len(`{"project_id":1,"x":""}`)) + `"}`
		_ = e.stream.Send(requestBody(body, true)) // fails when the server has refused it already
		m, err := e.stream.Recv()
		if c.status != codes.OK {
			assert.Error(t, err)
		} else {
			require.NoError(t, err)
			assert.EqualValues(t, c.answer, m.GetImmediateResponse().GetStatus().GetCode())
		}
		e.leave()
		f.ended(i + 1)
	}
}

// Connections are counted until they are closed.
func TestConnectionsAreCounted(t *testing.T) {
	f := newFixture(t, 1, nil)
	open, most := f.server.Conns()
	assert.Equal(t, []int{0, 256}, []int{open, most}, "gRPC connects with the first request")
	clients := []*grpc.ClientConn{f.client, f.dial()}
	for i, c := range clients {
		_, err := grpc_health_v1.NewHealthClient(c).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		open, _ = f.server.Conns()
		assert.Equal(t, i+1, open)
	}
	require.NoError(t, clients[1].Close())
	require.Eventually(t, func() bool { open, _ = f.server.Conns(); return open == 1 }, patience, time.Millisecond)
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

func TestSettings(t *testing.T) {
	for listen, fault := range map[string]string{
		"":                                  "",
		"127.0.0.1:9002":                    "",
		"unix:/run/pilotfish/mesh.sock":     "",
		"9002":                              `mesh.listen: "9002" is not host:port`,
		"unix:mesh.sock":                    `mesh.listen: "unix:mesh.sock" is not unix: and an absolute path of at most 107 bytes`,
		"unix:/" + strings.Repeat("x", 107): "mesh.listen: \"unix:/" + strings.Repeat("x", 107) + "\" is not unix: and an absolute path of at most 107 bytes",
	} {
		var f settings.Faults
		Settings{Listen: listen}.Check(f.In("mesh"))
		if fault == "" {
			assert.NoError(t, f.Err(), listen)
		} else {
			assert.EqualError(t, f.Err(), fault)
		}
	}
}

func TestAFilterNeedsItsParts(t *testing.T) {
	_, err := New(Config{})
	assert.ErrorContains(t, err, "required")
}
