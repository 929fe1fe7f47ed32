//go:build cluster

package discovery

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/loopback"
	"example.org/pilotfish/internal/pool"
)

// The tests in this file run a real Consul agent. They take about half a minute:
//
//	cd tools/consul && go build -o ../../bin/consul github.com/hashicorp/consul
//	go test -tags cluster -run RealConsul ./internal/discovery

// patient bounds a wait for something that comes within seconds.
const patient = time.Minute

// realAgent is a Consul agent in dev mode, which keeps nothing when it ends.
type realAgent struct {
	binary string
	args   []string
	client *api.Client
	http   string // its address

	cmd *exec.Cmd
	log *bytes.Buffer
}

// newRealAgent prepares an agent on free ports of loopback, without starting it.
func newRealAgent(t *testing.T) *realAgent {
	t.Helper()
	binary, err := filepath.Abs(cmp.Or(os.Getenv("PILOTFISH_CONSUL"), "../../bin/consul"))
	require.NoError(t, err)
	_, err = os.Stat(binary)
	require.NoError(t, err, "want a Consul agent: cd tools/consul && go build -o ../../bin/consul github.com/hashicorp/consul")

	ports := freePorts(t, 4)
	a := &realAgent{
		binary: binary,
		http:   net.JoinHostPort("127.0.0.1", ports[0]),
		args: []string{
			"agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-log-level=warn",
			"-http-port", ports[0], "-server-port", ports[1],
			"-serf-lan-port", ports[2], "-serf-wan-port", ports[3],
			"-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1",
			"-hcl", "disable_update_check = true",
		},
	}
	a.client, err = api.NewClient(&api.Config{Address: "http://" + a.http, Transport: &http.Transport{DisableKeepAlives: true}})
	require.NoError(t, err)
	t.Cleanup(a.stop)
	return a
}

// freePorts returns ports for servers that will start soon.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		address, err := loopback.Reserve()
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		ports = append(ports, port)
	}
	return ports
}

// start runs the agent and waits until it leads itself.
func (a *realAgent) start(t *testing.T) {
	t.Helper()
	a.log = new(bytes.Buffer)
	a.cmd = exec.Command(a.binary, a.args...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, a.cmd.Start())
	led := func() bool { leader, err := a.client.Status().Leader(); return err == nil && leader != "" }
	if !assert.Eventually(t, led, patient, 100*time.Millisecond, "the agent leads itself") {
		a.stop()
		t.Fatal(a.log.String())
	}
}

// stop kills the agent and waits for its end; it forgets all that it knew.
func (a *realAgent) stop() {
	if a.cmd == nil {
		return
	}
	_ = a.cmd.Process.Kill() // it may have ended by itself
	_ = a.cmd.Wait()         // tells that it was killed
	a.cmd = nil
}

// register registers instances of the service "rules" by number, at ports 9000 and up.
func (a *realAgent) register(t *testing.T, meta map[string]string, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		require.NoError(t, a.client.Agent().ServiceRegister(&api.AgentServiceRegistration{
			ID: fmt.Sprintf("rules-%d", n), Name: "rules", Address: "127.0.0.1", Port: 9000 + n,
			Weights: &api.AgentWeights{Passing: 1 + n, Warning: 1}, Meta: meta,
		}))
	}
}

// followReal runs d until the test ends, and hands out its sets.
func followReal(t *testing.T, d *Discovery) <-chan []pool.Upstream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := make(chan []pool.Upstream, 100), make(chan error, 1)
	go func() { ended <- d.Run(ctx, out) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	return out
}

// until reads sets until one has these ports, and returns it.
func until(t *testing.T, sets <-chan []pool.Upstream, ports string) []pool.Upstream {
	t.Helper()
	late := time.After(patient)
	got := "none"
	for {
		select {
		case set := <-sets:
			got = strings.ReplaceAll(addresses(set), "127.0.0.1:", "")
			if got == ports {
				return set
			}
		case <-late:
			require.FailNow(t, "the set did not come", "want %q, last %q", ports, got)
		}
	}
}

func realDiscovery(t *testing.T, a *realAgent) *Discovery {
	t.Helper()
	var c Consul
	c.SetDefaults()
	c.Address, c.Service, c.KeepLast = a.http, "rules", 12*time.Second
	d, err := New(Config{Settings: Settings{Consul: &c}, Rand: seeded()})
	require.NoError(t, err)
	return d
}

func TestRealConsulDiscovery(t *testing.T) {
	a := newRealAgent(t)
	a.start(t)
	a.register(t, map[string]string{"cores": "16", "started_at": "2026-03-01T12:00:00Z", "preemptible": "true"}, 1, 2)
	d := realDiscovery(t, a)
	sets := followReal(t, d)

	set := until(t, sets, "9001 9002")
	assert.Equal(t, pool.Upstream{
		Address: "127.0.0.1:9002", Weight: 3, Cores: 16, StartedAt: epoch, StopsAt: epoch.Add(24 * time.Hour),
	}, set[1])

	a.register(t, nil, 3)
	until(t, sets, "9001 9002 9003")

	a.register(t, map[string]string{"draining": "true"}, 2)
	set = until(t, sets, "9001 9002 9003")
	assert.Equal(t, pool.Upstream{Address: "127.0.0.1:9002", Weight: 3, Draining: true}, set[1])

	require.NoError(t, a.client.Agent().ServiceDeregister("rules-1"))
	until(t, sets, "9002 9003")
	assert.NoError(t, d.Status().Err)
}

func TestRealConsulHealthCheck(t *testing.T) {
	a := newRealAgent(t)
	a.start(t)
	var sick atomic.Bool
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer health.Close()
	a.register(t, nil, 1)
	require.NoError(t, a.client.Agent().ServiceRegister(&api.AgentServiceRegistration{
		ID: "rules-2", Name: "rules", Address: "127.0.0.1", Port: 9002,
		Check: &api.AgentServiceCheck{HTTP: health.URL, Interval: "100ms", Timeout: "5s"},
	}))
	sets := followReal(t, realDiscovery(t, a))
	until(t, sets, "9001 9002")
	sick.Store(true)
	until(t, sets, "9001")
	sick.Store(false)
	until(t, sets, "9001 9002")
}

func TestRealConsulRestartedEmpty(t *testing.T) {
	a := newRealAgent(t)
	a.start(t)
	a.register(t, nil, 1, 2, 3, 4)
	d := realDiscovery(t, a)
	sets := followReal(t, d)
	until(t, sets, "9001 9002 9003 9004")

	a.stop()
	require.Eventually(t, func() bool { return d.Status().Err != nil }, patient, 50*time.Millisecond)
	a.start(t)
	require.Eventually(t, func() bool { return d.Status().Doubt == "emptiness" }, patient, 50*time.Millisecond,
		"the agent came back empty, which is in doubt")
	assert.Equal(t, 4, d.Status().Upstreams, "the last set is kept")
	a.register(t, nil, 1, 2, 3, 5)
	until(t, sets, "9001 9002 9003 9004 9005")
	until(t, sets, "9001 9002 9003 9005")

	// Nobody registers again after the next restart: the emptiness is real.
	a.stop()
	a.start(t)
	until(t, sets, "")
	assert.Zero(t, d.Status().Upstreams)
}

func TestRealConsulAccessControl(t *testing.T) {
	const root, none = "6f1a0f52-0000-4000-8000-000000000001", "6f1a0f52-0000-4000-8000-000000000002"
	a := newRealAgent(t)
	a.args = append(a.args, "-hcl", `acl { enabled = true  default_policy = "deny"  tokens { initial_management = "`+root+`"  agent = "`+root+`" } }`)
	client, err := api.NewClient(&api.Config{Address: "http://" + a.http, Token: root, Transport: &http.Transport{DisableKeepAlives: true}})
	require.NoError(t, err)
	a.client = client
	a.start(t)
	require.Eventually(t, func() bool {
		_, _, err := client.ACL().TokenCreate(&api.ACLToken{SecretID: none}, nil)
		return err == nil
	}, patient, 100*time.Millisecond, "the access control is up")
	a.register(t, nil, 1)

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(none), 0o600))
	var c Consul
	c.SetDefaults()
	c.Address, c.Service, c.TokenFile = a.http, "rules", token
	d, err := New(Config{Settings: Settings{Consul: &c}, Rand: seeded()})
	require.NoError(t, err)
	sets := followReal(t, d)
	require.Eventually(t, func() bool { return d.Status().Err != nil }, patient, 50*time.Millisecond)
	assert.ErrorContains(t, d.Status().Err, "the ACL token may not read", "nothing to see is no emptiness")

	require.NoError(t, os.WriteFile(token, []byte(root), 0o600))
	until(t, sets, "9001")
}
