package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// systemd is told when jobs are taken, and when no more are.
func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(patience)))
	told := func() string {
		message := make([]byte, 100)
		n, err := socket.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}
	cmd := exec.Command(program, "serve", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket.LocalAddr().String())
	s := launch(t, cmd)
	assert.Equal(t, "READY=1", told())
	s.stop()
	assert.Equal(t, "STOPPING=1", told())
}
