package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/fakeupstream"
)

// Refusals because of a project's limit, a 500 that counts as a result, and prefetches are not failures: otherwise they
// would push failed jobs out of the list.
func TestNotCountedAsFailures(t *testing.T) {
	s := newServed(zap.NewNop())
	for _, why := range []intake.Shedding{intake.ProjectLimit, intake.QueueFull} {
		r := &record.Job{Arrived: time.Now(), Outcome: intake.Shed, Shedding: why}
		r.Total = time.Since(r.Arrived)
		s.ended(quality.Default(), r)
	}
	s.ended(quality.Default(), &record.Job{Arrived: time.Now(), Outcome: intake.Shed, Facts: intake.Facts{Prefetch: true}})
	answered500 := &record.Job{Arrived: time.Now(), Outcome: intake.Failed, Completeness: intake.Complete, Status: 500}
	s.ended(quality.Settings{Count500: false}, answered500)
	require.Len(t, s.failures, 1)
	s.ended(quality.Default(), answered500)
	require.Len(t, s.failures, 2)
	all := fleetOf(s).Windows[0].All
	assert.Equal(t, []uint64{3, 1, 1, 1, 1}, []uint64{all.Jobs, all.Complete, all.Failed, all.Absent, all.Limited})
}

func TestFewDescriptors(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	checkDescriptors(zap.New(core), 1099, 500)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, map[string]any{"limit": uint64(1099), "needed": int64(1100)}, logs.All()[0].ContextMap())
	checkDescriptors(zap.New(core), 1100, 500)
	assert.Equal(t, 1, logs.Len())
}

// fleetOf returns the state of the fleet.
func fleetOf(s *served) quality.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.View(time.Now(), nil).Fleet
}

// Each job waits half a second longer than the one before. Then three are lost, and then all
// succeed.
func TestModesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		s := newServed(zap.New(core))
		advance := func() {
			s.advance(time.Now(), quality.Moment{Upstreams: []pool.State{{Upstream: pool.Upstream{Address: "a:1"}}}})
		}
		advance()
		jobs := func(n int, firstByte func(i int) time.Duration, o intake.Outcome) {
			for i := range n {
				arrived := time.Now().Add(-firstByte(i))
				r := &record.Job{Arrived: arrived, Outcome: o, TTFB: firstByte(i), Total: firstByte(i)}
				if o == intake.Answered {
					r.Completeness = intake.Complete
					j := &dispatch.Job{Request: dispatch.Request{Arrived: arrived}, FirstByte: time.Minute, Deadline: arrived.Add(40 * time.Second)}
					s.began(time.Now(), j, pool.Choice{Address: "a:1", Claimed: arrived}, nil)
				}
				s.ended(quality.Default(), r)
				time.Sleep(time.Second)
				advance()
			}
		}
		jobs(60, func(i int) time.Duration { return time.Duration(i) * 500 * time.Millisecond }, intake.Answered)
		require.NotNil(t, fleetOf(s).DeadlineSeconds)
		assert.InDelta(t, 20, *fleetOf(s).DeadlineJobs, 3, "the deadline counts: it is before the bound on the first byte")
		second := func(int) time.Duration { return time.Second }
		jobs(3, second, intake.Deadline)
		jobs(120, second, intake.Answered)
		var changes []string
		for _, line := range logs.All() {
			fields := line.ContextMap()
			if _, ok := fields["upstream"]; !ok {
				changes = append(changes, fmt.Sprintf("%s: %s to %s", line.Level, fields["from"], fields["to"]))
				assert.NotEmpty(t, fields["cause"])
			}
		}
		assert.Equal(t, []string{"warn: steady to queue grows", "warn: queue grows to jobs fail", "info: jobs fail to steady"}, changes)
	})
}

// While no upstream is known, readiness states the trouble of discovery. Later it is stated next to the mode, for as long as
// it lasts. The log has the same cause.
func TestTroubleOfDiscoveryIsStated(t *testing.T) {
	cfg, path := fileConfig(t, "")
	require.NoError(t, os.Remove(path))
	s, logs := logged(t, &cfg)
	assert.EqualError(t, s.refusal(), "no upstream is known yet")
	s.start(t.Context())
	defer s.stop()
	eventually := func(so func() bool) {
		t.Helper()
		require.Eventually(t, so, patience, time.Millisecond)
	}
	eventually(func() bool { return strings.Contains(s.refusal().Error(), path+" cannot be read: no such file") })
	assert.Empty(t, s.now().Warnings, "the reason is in NotReady")
	w := handle(s, "POST", "/v1/jobs", `{"project_id": 7, "timeouts": {"queue_seconds": 0.001}}`)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), s.refusal().Error(), "the submitter learns the reason, too")

	list := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	list("127.0.0.1:1\n")
	eventually(func() bool { return s.refusal() == nil })
	require.Empty(t, s.now().Warnings)
	logs.TakeAll()
	list("127.0.0.1:1 core=4\n")
	eventually(func() bool { return len(s.now().Warnings) == 1 })
	text := s.now().Warnings[0]
	assert.Regexp(t, `^discovery, since [-\d]{10} \d\d:\d\d [^ ]+: .*, line 1: core="4": unknown key; did you mean cores\?; 1 upstream kept$`, text)
	cause, _ := logs.FilterMessage("discovery: the source fails, or its list is not accepted in full").All()[0].ContextMap()["cause"].(string)
	require.NotEmpty(t, cause)
	assert.Contains(t, text, ": "+cause)
	list("127.0.0.1:1 cores=4\n")
	eventually(func() bool { return len(s.now().Warnings) == 0 })
}

// A shutdown does not wait for queued jobs for which no upstream is known: they were never sent.
func TestShutdownDismissesJobsWithoutUpstreams(t *testing.T) {
	cfg := before()
	cfg.Discovery.File = filepath.Join(t.TempDir(), "missing.txt")
	s, _ := logged(t, &cfg)
	ended := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		ended <- handle(s, "POST", "/v1/jobs", `{"project_id": 7, "timeouts": {"queue_seconds": 3600}}`)
	}()
	require.Eventually(t, func() bool { _, waiting := s.balancer.Counts(); return waiting == 1 }, patience, time.Millisecond)
	require.NoError(t, s.drain(t.Context(), patience))
	select {
	case w := <-ended:
		assert.Equal(t, []any{503, "shutting-down", "1"}, []any{w.Code, w.Header().Get("Pilotfish-Reason"), w.Header().Get("Retry-After")})
	case <-time.After(patience):
		require.Fail(t, "the job still waits")
	}
}

// The admin port and the metrics agree about a job.
func TestAJobOnTheAdminPort(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg, _ := fileConfig(t, upstream.Address())
	s, _ := logged(t, &cfg)
	s.start(t.Context())
	defer s.stop()
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 1 }, patience, time.Millisecond)
	s.served.advance(time.Now(), quality.Moment{Upstreams: s.balancer.States()})
	port := s.admin()
	get := func(path string) string {
		w := handle(port, "GET", path, "")
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	now := func() (n admin.Now) {
		require.NoError(t, json.Unmarshal([]byte(get("/api/now")), &n))
		return n
	}
	assert.Equal(t, "ready: 1 of 1 upstreams are eligible\n", get("/readyz"))
	submit := func(session string) int {
		return handle(s, "POST", "/v1/jobs", strings.Replace(fakeupstream.ExampleJob(), `"session_id"`, `"session_id": "`+session+`", "was"`, 1)).Code
	}
	require.Equal(t, http.StatusOK, submit("one"))
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/v1/jobs/1", nil))
	n := now()
	assert.Equal(t, uint64(1), n.Fleet.Windows[0].High.Complete)
	require.Len(t, n.Upstreams, 1)
	assert.Equal(t, upstream.Address(), n.Upstreams[0].Address)
	assert.Empty(t, n.Projects)
	assert.Empty(t, n.Open)
	page := get("/metrics")
	assert.Contains(t, page, `pilotfish_jobs_read_total{read="full"} 1`)
	assert.Contains(t, page, `pilotfish_jobs_read_total{read="unread"} 0`, "a request without a body has nothing to read")
	assert.Contains(t, page, `pilotfish_job_stretch_count{priority="high"} 1`, "the reference server reports the wait")
	assert.Contains(t, page, `pilotfish_mode{upstream="`+upstream.Address()+`"} 0`)

	// A job in flight is shown with its age and its upstream.
	upstream.SetFault(fakeupstream.Fault{Hang: true})
	ended := make(chan int)
	go func() { ended <- submit("two") }()
	require.Eventually(t, func() bool { return len(now().Open) == 1 }, patience, time.Millisecond)
	n = now()
	require.Len(t, n.Projects, 1)
	assert.Equal(t, []any{n.Open[0].Project, 1}, []any{n.Projects[0].Name, n.Projects[0].InFlight})
	open := n.Open[0]
	assert.Equal(t, []string{"two", "high", upstream.Address()}, []string{open.Session, open.Priority, open.Upstream})
	assert.Positive(t, open.UpstreamSeconds)
	assert.GreaterOrEqual(t, open.Seconds, open.UpstreamSeconds)
	upstream.Kill()
	<-ended
	n = now()
	assert.Empty(t, n.Open)
	require.NotEmpty(t, n.Failures)
	failed := n.Failures[0]
	assert.Equal(t, "two", failed["session"])
	assert.Positive(t, failed["total_seconds"])
	assert.Equal(t, upstream.Address(), failed["attempts"].([]any)[0].(map[string]any)["upstream"], "the page shows where it was tried")
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT`, failed["at"])
}

// The durations learned by job.length_key survive a restart, and explain shows them. A sidecar starts even if the durations
// in its snapshot are invalid.
func TestLengthsAfterARestart(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg, _ := fileConfig(t, upstream.Address())
	cfg.Discovery.Snapshot = filepath.Join(t.TempDir(), "snapshot")
	cfg.Job.LengthKey = intake.Places{{Pointer: "/channel"}}
	const body = `{"project_id": 7, "channel": "a"}`
	learnedFrom := func(jobs int) string {
		s, logs := logged(t, &cfg)
		s.start(t.Context())
		defer s.stop()
		require.Eventually(t, func() bool { return len(s.balancer.States()) == 1 }, patience, time.Millisecond)
		for range jobs {
			handle(s, "POST", "/v1/jobs", body)
		}
		w := handle(s.admin(), "POST", "/api/pick", body)
		var pick admin.Pick
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &pick), w.Body)
		require.Len(t, pick.Ranking, 1)
		assert.Equal(t, pick.Ranking[0].ExpectedBy != "", pick.Ranking[0].Expected > 0)
		for _, line := range logs.FilterMessage("the snapshot's durations of jobs cannot be used: they are learned again").All() {
			return line.ContextMap()["error"].(string)
		}
		return pick.Ranking[0].ExpectedBy
	}
	assert.Empty(t, learnedFrom(0), "nothing is known")
	assert.Equal(t, "length_key", learnedFrom(5))
	assert.Equal(t, "length_key", learnedFrom(0), "after a restart")
	text, err := os.ReadFile(cfg.Discovery.Snapshot)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.Discovery.Snapshot, bytes.Replace(text, []byte(`"seconds": `), []byte(`"seconds": -`), 1), 0o600))
	assert.Contains(t, learnedFrom(0), "learned duration 1 has -")
}

// The page shows the capacity that the fleet needs after some jobs.
func TestCapacityOnTheAdminPort(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	assert.Nil(t, s.now().Capacity)
	now := time.Now()
	s.balancer.Report("127.0.0.1:1", pool.Report{At: now, Cores: 8, CoresBusy: 6, Completed: -1})
	s.served.machine = quality.New(now.Add(-120 * time.Second))
	for i := range 120 {
		at := now.Add(time.Duration(i-120) * time.Second)
		for range 3 {
			s.served.machine.Ended(at, quality.Default(), &record.Job{Completeness: intake.Complete})
		}
		s.served.advance(at, quality.Moment{Upstreams: s.balancer.States()})
	}
	c := s.now().Capacity
	require.NotNil(t, c)
	assert.Equal(t, 0.75, c.Full)
	assert.Equal(t, 2, c.Needed, "6 cores and 2.33 times their root are 11.7")
	assert.Equal(t, c, s.live(now).Capacity)
}

// The mesh port serves a self-signed certificate, or one from a folder that Kubernetes mounts from a secret. The
// metrics count its connections, and state when the first certificate expires.
func TestTheMeshPortByTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := identity(t, time.Now().AddDate(-1, 0, 0))
	require.NoError(t, os.Rename(cert, filepath.Join(folder, "tls.crt")))
	require.NoError(t, os.Rename(key, filepath.Join(folder, "tls.key")))
	mounted, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	require.NoError(t, err)
	var by settings.TLS
	by.CertFile, by.KeyFile = identity(t, time.Now())
	for _, setting := range []string{"self-signed", folder} {
		cfg := before("127.0.0.1:9")
		cfg.Mesh.Listen, cfg.Mesh.TLS, cfg.UpstreamTLS = "127.0.0.1:0", setting, &by
		s, p := running(t, &cfg)
		var shown []byte
		client, err := grpc.NewClient(p.Mesh.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // like gateways
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
		live := s.live(time.Now())
		assert.Equal(t, setting == folder, live.CertificateExpires.Equal(mounted.Leaf.NotAfter))
		assert.Contains(t, live.Bounds, metrics.Bound{Name: "mesh_connections", Used: 1, Limit: 256})
		require.NoError(t, client.Close())
	}
	cfg := before("127.0.0.1:9")
	cfg.Mesh.TLS = folder + "/none"
	_, err = newSidecar(&cfg, nil, source{}, quiet(t))
	assert.ErrorContains(t, err, "none/tls.crt")
}
