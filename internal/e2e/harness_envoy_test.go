//go:build mesh

package e2e

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/test/program"
)

// shippedEnvoy is the configuration in the repository.
const shippedEnvoy = "../../deploy/envoy/envoy.yaml"

// proxyMode is the mode in which Envoy sends bodies to pilotfish.
type proxyMode string

const (
	bufferedMode proxyMode = "BUFFERED" // as shipped
	partialMode  proxyMode = "BUFFERED_PARTIAL"
	duplexMode   proxyMode = "FULL_DUPLEX_STREAMED"
)

// mesh is a cluster whose jobs go through Envoy, which consults the sidecar.
type mesh struct {
	*cluster
	upstreams []string
	asks      string // the sidecar's address for Envoy
	routes    string // Envoy's configuration file
	jobs      string // Envoy's address for jobs
	admin     string // Envoy's admin address
	envoy     *program.Daemon
}

// newMesh starts four servers, the sidecar and Envoy. change modifies Envoy's configuration.
func newMesh(t *testing.T, mode proxyMode, change func(string) string, flags ...string) *mesh {
	t.Helper()
	c := newCluster(t, newFeeds(t, 4), flags...)
	upstreams := freeAddresses(t, 4)
	for _, a := range upstreams {
		c.serve(a)
	}
	return newMeshOver(c, upstreams, mode, freeAddresses(t, 1)[0], change)
}

// newMeshOver starts the sidecar, which listens for Envoy at asks, and Envoy with four
// upstreams.
func newMeshOver(c *cluster, upstreams []string, mode proxyMode, asks string, change func(string) string) *mesh {
	t := c.t
	t.Helper()
	free := freeAddresses(t, 2)
	m := &mesh{cluster: c, upstreams: upstreams, asks: asks, jobs: free[0], admin: free[1]}
	m.sideline(m.sidecarConfig())
	m.eligible(4, 4)
	m.routes = filepath.Join(t.TempDir(), "envoy.yaml")
	require.NoError(t, os.WriteFile(m.routes, []byte(change(m.shipped(mode))), 0o600))
	m.proxy()
	return m
}

func (m *mesh) sidecarConfig() string {
	return "mesh: {listen: " + m.asks + "}\ndiscovery: {static: [" + strings.Join(m.upstreams, ", ") + "]}\n"
}

// shipped returns the repository's configuration with the test's ports.
func (m *mesh) shipped(mode proxyMode) string {
	text, err := os.ReadFile(shippedEnvoy)
	require.NoError(m.t, err)
	config := string(text)
	replace := func(old, by string) {
		m.t.Helper()
		require.Equal(m.t, 1, strings.Count(config, old), "%s has one %s", shippedEnvoy, old)
		config = strings.Replace(config, old, by, 1)
	}
	for i, a := range append([]string{m.jobs, m.admin}, m.upstreams...) {
		old := []int{10000, 9901, 9001, 9011, 9021, 9031}[i]
		replace("port_value: "+strconv.Itoa(old)+"}", "port_value: "+portOf(m.t, a)+"}")
	}
	const asks = "{socket_address: {address: 127.0.0.1, port_value: 9002}}"
	if path, local := strings.CutPrefix(m.asks, "unix:"); local {
		replace(asks, "{pipe: {path: "+path+"}}")
	} else {
		replace(asks, "{socket_address: {address: 127.0.0.1, port_value: "+portOf(m.t, m.asks)+"}}")
	}
	replace("request_body_mode: BUFFERED", "request_body_mode: "+string(mode))
	if mode == duplexMode {
		replace("response_body_mode: NONE", "response_body_mode: "+string(mode))
	}
	return config
}

func asShipped(config string) string { return config }

// proxy starts Envoy and waits until it accepts jobs.
func (m *mesh) proxy() {
	m.t.Helper()
	m.envoy = program.Spawn(m.t, filepath.Join(m.dir, "envoy.Log"), envoyProgram(m.t), "--config-path", m.routes,
		"--concurrency", "2", "--disable-hot-restart", "--log-level", "warning")
	require.Eventually(m.t, func() bool { return accepts(m.jobs) }, 2*patience, 10*tick, "Envoy does not take jobs")
}

// end ends all processes, and expects exit code 0.
func (m *mesh) end() {
	m.t.Helper()
	m.envoy.Drain()
	m.beside.Drain()
	for _, server := range m.servers {
		server.Drain()
	}
}

// statistics returns Envoy's own statistics with matching names.
func (m *mesh) statistics(names string) string {
	res, err := http.Get("http://" + m.admin + "/stats?filter=" + url.QueryEscape(names))
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func envoyProgram(t *testing.T) string {
	t.Helper()
	return tool(t, "envoy/bin/envoy", "PILOTFISH_ENVOY", "make bin/envoy/installed")
}

// TestMeshShippedConfiguration: Envoy accepts the shipped configurations, also in the other
// body modes.
func TestMeshShippedConfiguration(t *testing.T) {
	shipped, err := os.ReadFile(shippedEnvoy)
	require.NoError(t, err)
	manifest, err := os.ReadFile("../../deploy/kubernetes/mesh/sidecar/envoy/envoy.yaml")
	require.NoError(t, err)
	var pod struct {
		Data map[string]string `yaml:"data"`
	}
	require.NoError(t, yaml.Unmarshal(manifest, &pod))
	for name, text := range map[string]string{"shipped": string(shipped), "in Kubernetes": pod.Data["envoy.yaml"]} {
		for _, mode := range []proxyMode{bufferedMode, partialMode, duplexMode} {
			require.Contains(t, text, "request_body_mode: BUFFERED", name)
			file := filepath.Join(t.TempDir(), "envoy.yaml")
			config := strings.ReplaceAll(text, "request_body_mode: BUFFERED", "request_body_mode: "+string(mode))
			require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
			out, err := exec.Command(envoyProgram(t), "--mode", "validate", "--config-path", file).CombinedOutput()
			assert.NoError(t, err, "%s: %s", name, out)
			assert.NotContains(t, string(out), "Deprecated", name)
		}
	}
}
