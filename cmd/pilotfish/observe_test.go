package main

import (
	"bytes"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
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

// BenchmarkSinks is what is done for a job only to be seen, with the settings of an
// empty file: figures, projects, metrics and the log line. The jobs are of 5,000
// projects and go to 4 upstreams, which tell of their load (hints) or do not (plain).
func BenchmarkSinks(b *testing.B) {
	for name, hint := range map[string]*pool.Hint{
		"plain": nil, "hints": {Waited: time.Millisecond, Fetched: -1, Known: true, Cached: true},
	} {
		b.Run(name, func(b *testing.B) {
			addresses := []string{"127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9003"}
			cfg := config.Default()
			cfg.Discovery.Static = addresses
			s, err := newSidecar(&cfg, nil, quiet(b))
			require.NoError(b, err)
			sinks := s.sinks()
			set := make([]pool.Upstream, len(addresses))
			for i := range set {
				set[i].Address = addresses[i]
			}
			s.balancer.Set(set)
			s.served.look(time.Now(), quality.Moment{Upstreams: s.balancer.States()})
			random := rand.New(rand.NewPCG(1, 2))
			projects := make([]intake.Facts, 5000)
			for i := range projects {
				id := strconv.Itoa(10_000 + i)
				projects[i] = intake.Facts{Project: id, Key: intake.Key(id)}
			}
			r := &record.Job{
				ID: "0c4a3c7b6f0e4e7aa5c1f6a1b3f7d2e9", Read: intake.Full, Body: 4096, Bytes: 12, Status: 200,
				Outcome: intake.Answered, Completeness: intake.Complete, Queued: 1234,
				Attempts: make([]record.Attempt, 1),
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Arrived = time.Now()
				r.Facts = projects[random.IntN(len(projects))]
				start := time.Duration(20_000 + random.IntN(5_000))
				r.TTFB = start + time.Duration(500_000+random.IntN(1_000_000))
				r.Attempts[0] = record.Attempt{
					Upstream: addresses[random.IntN(len(addresses))], Cache: selection.Cached,
					Why:     pool.Why{RunnerUp: "127.0.0.1:9000", RunnerUpCost: 0.002, Cost: selection.Cost{Total: 0.001, Placement: 0.001}},
					Outcome: pool.Answered, Start: start, End: r.TTFB, Hint: hint,
				}
				r.Total = r.TTFB + time.Duration(30_000+random.IntN(10_000))
				for _, sink := range sinks {
					sink(r)
				}
			}
		})
	}
}

// The metrics count the connections of Envoy.
func TestConnectionsAtTheMeshPort(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Mesh.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Discovery.Static = []string{"127.0.0.1:1"}
	s, p := running(t, &cfg)
	c, err := net.Dial("tcp", p.Mesh.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.Eventually(t, func() bool {
		return slices.Contains(s.live(time.Now()).Bounds, metrics.Bound{Name: "mesh_connections", Used: 1, Limit: 256})
	}, patience, time.Millisecond)
}

// The mesh port shows a certificate of its own, or that of a folder, as Kubernetes mounts a secret.
func TestTheMeshPortByTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := identity(t)
	require.NoError(t, os.Rename(cert, filepath.Join(folder, "tls.crt")))
	require.NoError(t, os.Rename(key, filepath.Join(folder, "tls.key")))
	mounted, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	require.NoError(t, err)
	for _, setting := range []string{"self-signed", folder} {
		cfg := config.Default()
		cfg.Listen, cfg.Admin, cfg.Mesh.Listen, cfg.Mesh.TLS = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", setting
		cfg.Discovery.Static = []string{"127.0.0.1:9"}
		_, p := running(t, &cfg)
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
		require.NoError(t, client.Close())
	}
	cfg := config.Default()
	cfg.Discovery.Static = []string{"127.0.0.1:9"}
	cfg.Mesh.TLS = folder + "/none"
	s, err := newSidecar(&cfg, nil, quiet(t))
	require.NoError(t, err)
	_, err = s.servers(nil)
	assert.ErrorContains(t, err, "none/tls.crt")
}
