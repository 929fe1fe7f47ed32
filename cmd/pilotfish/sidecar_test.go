package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/ports"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/fakeupstream"
)

// identity writes a self-signed certificate for pilotfish.
func identity(t *testing.T, from time.Time) (cert, key string) {
	t.Helper()
	own, err := files.SelfSigned(from)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	return written(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})), written(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

// before returns a configuration for these upstreams, with free ports and frequent reports.
func before(upstreams ...string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Discovery.Static = upstreams
	cfg.Reports.Interval, cfg.Reports.Timeout = 20*time.Millisecond, patience // a slow upstream must not become a suspect
	cfg.Retry.ConnectTimeout = patience                                       // and its connections must not time out
	return cfg
}

// post submits a job of project 7 to a listener, with a Host and headers. It expects the response of an
// upstream.
func post(t *testing.T, l net.Listener, host string, header ...string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+host+"/v1/jobs", strings.NewReader(`{"project_id": 7}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := dialing(t, l).Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	assert.Empty(t, response.Header.Get("Pilotfish-Reason"), "an upstream answered")
}

// handle sends a request with a JSON body to a handler, without a network.
func handle(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func written(t *testing.T, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// secured serves h by TLS to clients with a certificate. It returns the address and the
// settings for clients.
func secured(t *testing.T, h http.Handler) (address string, by settings.TLS) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "pilotfish", r.TLS.PeerCertificates[0].Subject.CommonName)
		h.ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	by.CAFile = written(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	by.CertFile, by.KeyFile = identity(t, time.Now())
	return server.Listener.Addr().String(), by
}

// quiet returns a log that is discarded.
func quiet(t testing.TB) *logging.Log {
	t.Helper()
	log, err := logging.New(io.Discard, "info")
	require.NoError(t, err)
	return log
}

// running starts a sidecar that serves its ports until the test ends.
func running(t *testing.T, cfg *config.Config) (*sidecar, ports.Ports) {
	t.Helper()
	return runningFrom(t, cfg, source{})
}

// runningFrom is running with a source for reloads.
func runningFrom(t *testing.T, cfg *config.Config, from source) (*sidecar, ports.Ports) {
	t.Helper()
	var f settings.Faults
	cfg.Check(&f)
	require.NoError(t, f.Err())
	var p ports.Ports
	require.NoError(t, p.Open(portsOf(cfg)))
	s, err := newSidecar(cfg, p.Addresses(), from, quiet(t))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, p) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		p.Close()
	})
	return s, p
}

// dialing returns a client that dials one listener for every request.
func dialing(t *testing.T, l net.Listener) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// An upstream whose address is another spelling of the sidecar's own address leaves the pool after the first
// connection.
func TestAnUpstreamThatIsTheSidecarItself(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	require.NoError(t, os.Symlink(filepath.Join(folder, "jobs"), link))
	cfg := before(upstream.Address(), "unix:"+link)
	cfg.Listen = "unix:" + filepath.Join(folder, "jobs")
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return s.balancer.Ready() && len(s.balancer.States()) == 1 }, patience, time.Millisecond)
	for range 3 {
		post(t, p.Jobs, "localhost")
	}
	assert.Len(t, upstream.Jobs(), 3)
}

// Jobs, reports and cache listings are sent to upstreams by TLS, with pilotfish's certificate.
func TestUpstreamsByTLS(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{Cached: []string{"7"}})
	at, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	address, by := secured(t, httputil.NewSingleHostReverseProxy(at))
	cfg := before(address)
	cfg.UpstreamTLS = &by
	s, p := running(t, &cfg)
	upstream.SetLoad(3, 0)
	require.Eventually(t, func() bool {
		states := s.balancer.States()
		return len(states) == 1 && states[0].Running == 3 && states[0].Cached == 1
	}, patience, time.Millisecond)

	post(t, p.Jobs, "localhost")
	assert.Len(t, upstream.Jobs(), 1)
	assert.True(t, s.live(time.Now()).CertificateExpires.After(time.Now()))

	bad := cfg
	bad.UpstreamTLS = &settings.TLS{CAFile: by.CAFile + ".gone"}
	reloadFails(t, s, &bad, "upstream_tls: ca_file: "+by.CAFile+".gone cannot be read: no such file")
	assert.Error(t, buildable(&bad))
}

// From the second job of a project on, upstreams get its expected duration in the configured header.
func TestExpectedDurationHeader(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg := before(upstream.Address())
	cfg.Job.ExpectedHeader = "x-seconds"
	s, p := running(t, &cfg)
	post(t, p.Jobs, "localhost")
	require.Eventually(t, func() bool { inFlight, _ := s.balancer.Counts(); return inFlight == 0 }, patience, time.Millisecond)
	post(t, p.Jobs, "localhost")
	jobs := upstream.Jobs()
	require.Len(t, jobs, 2)
	assert.NotContains(t, jobs[0].Header, "X-Seconds")
	assert.NotEmpty(t, jobs[1].Header.Get("X-Seconds"))
	assert.NotContains(t, jobs[1].Header, "Job-Expected")
}

// The ports and upstreams can be Unix sockets, and the admin port can require a token. Jobs are sent to an upstream's socket with
// their own Host header.
func TestSocketsAndAToken(t *testing.T) {
	folder := t.TempDir()
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, map[string]string{http.MethodGet: "localhost", http.MethodPost: "pilotfish.example:77"}[r.Method], r.Host)
		_, _ = io.WriteString(w, "ruleserver_jobs_running 3\nruleserver_stalled_joblets 0\n")
	}))
	_ = upstream.Listener.Close()
	var err error
	upstream.Listener, err = net.Listen("unix", folder+"/upstream")
	require.NoError(t, err)
	upstream.Start()
	defer upstream.Close()
	cfg := before("unix:" + folder + "/upstream")
	cfg.Listen, cfg.Admin = "unix:"+folder+"/jobs", "unix:"+folder+"/admin"
	cfg.AdminTokenFile = written(t, []byte("s3cret\n"))
	s, p := running(t, &cfg)
	for _, path := range []string{"/jobs", "/admin"} {
		info, err := os.Stat(folder + path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o660), info.Mode().Perm())
	}
	require.Eventually(t, func() bool {
		states := s.balancer.States()
		return len(states) == 1 && states[0].Running == 3
	}, patience, time.Millisecond)
	post(t, p.Jobs, "pilotfish.example:77") // browsers cannot access it, so any Host header is accepted

	code, _, problems := runOn("explain", "--admin", cfg.Admin)
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "name the file of its token with --token-file")
	code, out, problems := runOn("explain", "--admin", cfg.Admin, "--token-file", cfg.AdminTokenFile)
	assert.Zero(t, code, problems)
	assert.Contains(t, out, cfg.Discovery.Static[0])
}

// The body of a job to explain has the same limits as that of a submitted job: job.max_body and the memory budget.
func TestExplainedJobsAreBounded(t *testing.T) {
	g := &generation{cfg: config.Default()}
	g.cfg.Job.MaxBody = 1 << 20
	var err error
	g.reader, err = intake.NewReader(g.cfg.Job)
	require.NoError(t, err)
	budget := intake.NewBudget(100<<10, 64<<10)
	job := `{"project_id": 7, "filling": "` + strings.Repeat("x", 90<<10) + `"}`
	for n, want := range map[int64]error{0: nil, 20 << 10: intake.ErrNoRoom, 128 << 10: intake.ErrNoRoom} {
		require.NoError(t, budget.Reserve(n)) // as if by other jobs
		facts, err := g.describe(strings.NewReader(job), int64(len(job)), budget)
		require.ErrorIs(t, err, want)
		assert.Equal(t, err == nil, facts.Project == "7")
		assert.Equal(t, n, budget.Used())
		budget.Return(n)
	}
	_, err = g.describe(strings.NewReader(strings.Repeat(" ", 1<<20+1)), -1, intake.NewBudget(8<<20, 0))
	assert.ErrorIs(t, err, intake.ErrTooLarge)
}

func TestSignalsWithinASecondAreOne(t *testing.T) {
	var s stopSignals
	begin := time.Unix(1e9, 0)
	for _, row := range []struct {
		after      time.Duration
		drain, end bool
	}{{0, true, false}, {time.Microsecond, false, false}, {999 * time.Millisecond, false, false}, {time.Second, false, true}} {
		drain, end := s.receive(begin.Add(row.after))
		assert.Equal(t, []bool{row.drain, row.end}, []bool{drain, end}, "after %v", row.after)
	}
}
