//go:build cluster

package discovery

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/loopback"
)

// patient bounds a wait for something that comes within seconds.
const patient = time.Minute

// realAgent starts a Consul agent whose access control denies what the token root does not
// allow, and returns its address.
//
//	cd tools/consul && go build -o ../../bin/consul github.com/hashicorp/consul
//	go test -tags cluster -run RealConsul ./internal/discovery
func realAgent(t *testing.T, root string) string {
	t.Helper()
	binary, err := filepath.Abs(cmp.Or(os.Getenv("PILOTFISH_CONSUL"), "../../bin/consul"))
	require.NoError(t, err)
	args := []string{
		"agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-log-level=warn",
		"-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1", "-hcl", "disable_update_check = true",
		"-hcl", `acl { enabled = true  default_policy = "deny"  tokens { initial_management = "` + root + `"  agent = "` + root + `" } }`,
	}
	var first string
	for _, flag := range []string{"-http-port", "-server-port", "-serf-lan-port", "-serf-wan-port"} {
		address, err := loopback.Reserve()
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		args = append(args, flag, port)
		first = cmp.Or(first, address)
	}
	agent := exec.Command(binary, args...)
	agent.Stdout, agent.Stderr = t.Output(), t.Output()
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, agent.Start())
	t.Cleanup(func() {
		_ = agent.Process.Kill() // it may have ended by itself
		_ = agent.Wait()         // reports that it was killed
	})
	return first
}

// What a real agent says to a token that may see nothing is no emptiness. What else one
// does, internal/e2e has sidecars follow.
func TestRealConsulAccessControl(t *testing.T) {
	const root, none = "6f1a0f52-0000-4000-8000-000000000001", "6f1a0f52-0000-4000-8000-000000000002"
	address := realAgent(t, root)
	client, err := api.NewClient(&api.Config{Address: "http://" + address, Token: root, Transport: &http.Transport{DisableKeepAlives: true}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, _, err := client.ACL().TokenCreate(&api.ACLToken{SecretID: none}, nil)
		return err == nil
	}, patient, 100*time.Millisecond, "the access control is up")
	require.NoError(t, client.Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "rules", Address: "127.0.0.1", Port: 9001}))

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(none), 0o600))
	d, err := New(configOf(Settings{Consul: &Consul{Address: address, Service: "rules", TokenFile: token}}))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	sets, ended := make(chan []pool.Upstream, 1), make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx, func(set []pool.Upstream) { sets <- set })
	}()
	require.Eventually(t, func() bool { return strings.Contains(d.Status().Trouble, "the ACL token may not read") }, patient, 50*time.Millisecond)

	require.NoError(t, os.WriteFile(token, []byte(root), 0o600))
	select {
	case set := <-sets:
		assert.Equal(t, "127.0.0.1:9001", addresses(set))
	case <-time.After(patient):
		t.Error("the set did not come")
	}
	cancel()
	<-ended
}
