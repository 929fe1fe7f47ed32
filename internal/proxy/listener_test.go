package proxy_test

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy"
)

// A socket in the file system is out of every browser's reach, so the Host header
// may be any there.
func TestASocketInTheFileSystemTakesEveryHost(t *testing.T) {
	served := make(chan string, 1)
	guarded := proxy.NewGuard(nil).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served <- r.Host }))
	server, err := proxy.NewServer(guarded, proxy.ServerConfig{Conns: 1})
	require.NoError(t, err)
	path := t.TempDir() + "/jobs.sock"
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: pilotfish.example\r\n\r\n")
	require.NoError(t, err)
	assert.Equal(t, "pilotfish.example", <-served)
	require.NoError(t, server.Shutdown(t.Context()))
	assert.NoError(t, <-ended)
}
