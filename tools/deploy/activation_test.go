package deploy

import (
	"bytes"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/loopback"
)

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
		answer, err := http.Get("http://" + jobs)
		if err != nil {
			return false
		}
		return assert.NoError(t, answer.Body.Close())
	}, time.Minute, 10*time.Millisecond, "nobody answers at %s: %s", jobs, &log)
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
