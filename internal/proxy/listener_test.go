package proxy_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy"
)

// Connections that nobody uses keep nobody out: the one that has been idle for
// longest is closed. One with a request at work stays.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const most = 64
	begun, end := make(chan struct{}), make(chan struct{})
	server, err := proxy.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-end
		}
		_, _ = io.WriteString(w, "ok")
	}), proxy.ServerConfig{Conns: most, CloseIdle: true})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()

	c := &sidecar{t: t, address: l.Addr().String()}
	busy := c.connect()
	busy.say("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-begun
	var idle []*submitter
	for i := range most - 1 {
		s := c.connect()
		if i%2 == 1 { // the others have not said a word
			s.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.Equal(t, 200, s.status())
		}
		idle = append(idle, s)
	}
	require.Eventually(t, func() bool {
		open, limit := server.Conns()
		return open == most && limit == most
	}, patience, time.Millisecond, "a connection is not counted")
	for range 3 {
		s := c.connect()
		s.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.Equal(t, 200, s.status(), "a probe is answered")
	}
	require.NoError(t, idle[0].SetReadDeadline(time.Now().Add(patience)))
	_, err = idle[0].rest()
	assert.NoError(t, err, "the first that was idle was closed")
	last := idle[len(idle)-1]
	last.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	assert.Equal(t, 200, last.status(), "the last was not")

	close(end)
	assert.Equal(t, 200, busy.status())
	for _, s := range idle {
		_ = s.Close() // or Shutdown would wait for their first words
	}
	require.NoError(t, server.Shutdown(t.Context()))
	assert.NoError(t, <-ended)
}

// A socket in the file system is out of every browser's reach, so the Host header
// may be any there.
func TestASocketInTheFileSystemTakesEveryHost(t *testing.T) {
	served := make(chan string, 1)
	guarded := proxy.NewGuard(nil).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served <- r.Host }))
	server, err := proxy.NewServer(guarded, proxy.ServerConfig{})
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
