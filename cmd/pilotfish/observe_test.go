package main

import (
	"bytes"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

// A project is busy with all its jobs, however they end.
func TestBusiest(t *testing.T) {
	c, now := newServed(nil, quality.Default()), time.Unix(1e9, 0)
	r := &record.Job{Arrived: now, Facts: intake.Facts{Project: "7", Key: 7}, Outcome: intake.Answered}
	c.ended(r)
	r.Outcome = intake.Gone
	c.ended(r)
	assert.Equal(t, []quality.Busy{{Key: 7, Name: "7", Jobs: 2}}, c.busiest(now, 9))
}

// The mesh port shows a certificate of its own, or that of a folder, as Kubernetes mounts a secret. The metrics count
// its connections.
func TestTheMeshPortByTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := identity(t)
	require.NoError(t, os.Rename(cert, filepath.Join(folder, "tls.crt")))
	require.NoError(t, os.Rename(key, filepath.Join(folder, "tls.key")))
	mounted, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	require.NoError(t, err)
	for _, setting := range []string{"self-signed", folder} {
		cfg := before("127.0.0.1:9")
		cfg.Mesh.Listen, cfg.Mesh.TLS = "127.0.0.1:0", setting
		s, p := running(t, &cfg)
		var shown []byte
		client, err := grpc.NewClient(p.Mesh.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // as gateways do
			VerifyConnection: func(s tls.ConnectionState) error {
				shown = s.PeerCertificates[0].Raw
				return nil
			},
		})))
		require.NoError(t, err)
		reply, err := grpc_health_v1.NewHealthClient(client).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "liveness"})
		require.NoError(t, err)
		assert.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, reply.GetStatus())
		assert.Equal(t, setting == folder, bytes.Equal(mounted.Certificate[0], shown))
		assert.Contains(t, s.live(time.Now()).Bounds, metrics.Bound{Name: "mesh_connections", Used: 1, Limit: 256})
		require.NoError(t, client.Close())
	}
	cfg := before("127.0.0.1:9")
	cfg.Mesh.TLS = folder + "/none"
	s, err := newSidecar(&cfg, nil, quiet(t))
	require.NoError(t, err)
	_, err = s.servers(nil)
	assert.ErrorContains(t, err, "none/tls.crt")
}
