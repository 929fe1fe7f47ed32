package deploy

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"example.org/pilotfish/test/loopback"
)

// The parts of the compose file are consistent: mounts, requested paths, images and addresses.
// The syntax is checked by Docker.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Build   struct{ Context, Target string }
			Command []string
			Volumes []string
			Ports   []string
			Grace   string                  `json:"stop_grace_period"`
			Health  struct{ Test []string } `json:"healthcheck"`
		}
	}
	require.NoError(t, yaml.Unmarshal(read(t, "compose", "compose.yaml"), &compose))
	dockerfile := string(read(t, "..", "Dockerfile"))
	for name, s := range compose.Services {
		assert.Contains(t, dockerfile, "AS "+s.Build.Target+"\n", name)
		assert.FileExists(t, filepath.Join(root, "deploy", "compose", s.Build.Context, "Dockerfile"))
		for _, v := range s.Volumes {
			from, rest, _ := strings.Cut(v, ":")
			at, _, _ := strings.Cut(rest, ":")
			there, err := filepath.Glob(filepath.Join(root, "deploy", "compose", from))
			require.NoError(t, err)
			assert.Len(t, there, 1, from)
			assert.Contains(t, s.Command, at, "%s: what is mounted is used", name)
		}
		for _, p := range s.Ports {
			assert.True(t, strings.HasPrefix(p, "127.0.0.1:"), "%s is open to other machines", p)
		}
	}
	fish := compose.Services["pilotfish"]
	assert.Equal(t, []string{"CMD", "/pilotfish", "probe"}, fish.Health.Test)
	s := configuration(t, read(t, "compose", "pilotfish.yaml"))
	name, _, _ := strings.Cut(s.Discovery.DNS, ":")
	assert.Contains(t, compose.Services, name)
	assert.Contains(t, strings.Join(fish.Ports, " "), s.Admin)
	assert.Equal(t, "130s", fish.Grace)
	assert.Equal(t, "2m", s.Shutdown.Grace)
}

// units copies the units to where they can be verified, with the path of the built
// program instead of the installed one, and one change.
func units(t *testing.T, old, changed string) (service string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pilotfish.socket", "pilotfish.service"} {
		text := strings.ReplaceAll(string(read(t, "systemd", name)), "/usr/bin/pilotfish", pilotfish)
		writeTo(t, filepath.Join(dir, name), []byte(strings.Replace(text, old, changed, 1)))
	}
	return filepath.Join(dir, "pilotfish.service")
}

func writeTo(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	service := units(t, "", "")
	out, err := run("systemd-analyze", "verify", "--man=no", service, strings.TrimSuffix(service, "service")+"socket")
	require.NoError(t, err, out)
	assert.Empty(t, out, "nor is there a warning")
}

// systemd rates the exposure of a service from 0 to 100: what it could do if an attacker
// controlled it.
func TestServiceExposure(t *testing.T) {
	must(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", units(t, "", ""))
	_, err := run("systemd-analyze", "security", "--offline=true", "--threshold=15", units(t, "RestrictNamespaces=yes\n", ""))
	assert.Error(t, err, "the threshold leaves room to do without")
}

func TestServiceStopTimeoutExceedsGrace(t *testing.T) {
	stop, err := time.ParseDuration(setting(t, "pilotfish.service", "TimeoutStopSec"))
	require.NoError(t, err)
	assert.Greater(t, stop, 2*time.Minute, "the default of shutdown.grace")
	assert.Equal(t, "127.0.0.1:8080", setting(t, "pilotfish.socket", "ListenStream"), "the default of listen")
}

// setting returns a unit's setting.
func setting(t *testing.T, unit, key string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindSubmatch(read(t, "systemd", unit))
	require.NotNil(t, found, "%s has no %s", unit, key)
	return string(found[1])
}

// free returns an address for a server that will start soon.
func free(t *testing.T) string {
	t.Helper()
	address, err := loopback.Reserve()
	require.NoError(t, err)
	return address
}

// The service's command takes over the socket of the socket unit, and notifies systemd when it
// serves, as Type=notify requires.
func TestServiceSocketActivation(t *testing.T) {
	require.Equal(t, "notify", setting(t, "pilotfish.service", "Type"))
	jobs, admin := free(t), free(t)
	file := write(t, "pilotfish.yaml", []byte("admin: "+admin+"\ndiscovery:\n  static: [127.0.0.1:1]\n"))
	command := strings.NewReplacer("/usr/bin/pilotfish", pilotfish, "/etc/pilotfish/pilotfish.yaml", file).
		Replace(setting(t, "pilotfish.service", "ExecStart"))

	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer notices.Close()
	require.NoError(t, notices.SetReadDeadline(time.Now().Add(time.Minute)))

	state := t.TempDir()
	args := []string{"--setenv=STATE_DIRECTORY=" + state, "--setenv=NOTIFY_SOCKET=" + notices.LocalAddr().String(), "--listen=" + jobs, "--fdname=" + setting(t, "pilotfish.socket", "FileDescriptorName")}
	systemd := exec.Command("systemd-socket-activate", append(args, strings.Fields(command)...)...)
	var log bytes.Buffer
	systemd.Stdout, systemd.Stderr = &log, &log
	require.NoError(t, systemd.Start())
	defer func() { _ = systemd.Process.Kill() }()

	// The first connection starts the service, and waits until it is ready.
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + jobs)
		if err != nil {
			return false
		}
		return assert.NoError(t, response.Body.Close())
	}, time.Minute, 10*time.Millisecond, "no response from %s: %s", jobs, &log)
	assert.Equal(t, "READY=1", nextNotice(t, notices))
	assert.FileExists(t, filepath.Join(state, "running"), "the next start will know how this process ended")

	require.NoError(t, systemd.Process.Signal(syscall.SIGTERM)) // systemd-socket-activate has become the service
	assert.Equal(t, "STOPPING=1", nextNotice(t, notices))
	require.NoError(t, systemd.Wait(), "%s", &log)
	assert.NoFileExists(t, filepath.Join(state, "running"))
	assert.Contains(t, log.String(), `"jobs":"`+jobs+`"`)
}

// nextNotice returns the next notification.
func nextNotice(t *testing.T, notices *net.UnixConn) string {
	t.Helper()
	text := make([]byte, 4096)
	n, err := notices.Read(text)
	require.NoError(t, err)
	return string(text[:n])
}
