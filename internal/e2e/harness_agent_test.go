//go:build cluster

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// agent is a Consul agent in dev mode: a complete Consul that keeps no state after its end.
type agent struct {
	binary, log string
	http        string // its address
	args        []string

	process *daemon
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	free := freeAddresses(t, 4)
	return &agent{
		binary: tool(t, "consul", "PILOTFISH_CONSUL", "make bin/consul"),
		log:    filepath.Join(t.TempDir(), "consul.log"),
		http:   free[0],
		args: []string{
			"agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-log-level=warn",
			"-http-port", portOf(t, free[0]), "-server-port", portOf(t, free[1]),
			"-serf-lan-port", portOf(t, free[2]), "-serf-wan-port", portOf(t, free[3]),
			"-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1",
			"-hcl", "disable_update_check = true",
		},
	}
}

// start runs the agent and waits until it is its own leader.
func (a *agent) start(t *testing.T) {
	t.Helper()
	a.process = spawn(t, a.log, a.binary, a.args...)
	require.Eventually(t, func() bool {
		var leader string
		return a.get("/v1/status/leader", &leader) == nil && leader != ""
	}, 2*patience, 10*tick, "the agent does not lead itself")
}

// passing returns the number of servers that the agent reports as healthy, or -1 if it does not
// reply.
func (a *agent) passing() int {
	var entries []json.RawMessage
	if a.get("/v1/health/service/rules?passing", &entries) != nil {
		return -1
	}
	return len(entries)
}

// register registers a server with the agent. Its check is readiness, every second; or liveness if the server drains,
// so that sidecars see the drain.
func (a *agent) register(t *testing.T, address string, drains bool) {
	t.Helper()
	path := map[bool]string{false: "/healthz", true: "/livez"}[drains]
	request, err := http.NewRequest(http.MethodPut, "http://"+a.http+"/v1/agent/service/register", strings.NewReader(fmt.Sprintf(
		`{"ID": %q, "Name": "rules", "Address": "127.0.0.1", "Port": %s, "Meta": {"cores": "16", "draining": "%t"},
		"Check": {"HTTP": "http://%s%s", "Interval": "1s", "Timeout": "1s"}}`, address, portOf(t, address), drains, address, path)))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func (a *agent) get(path string, into any) error {
	response, err := http.Get("http://" + a.http + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
