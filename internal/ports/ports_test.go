package ports

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A socket file that a dead process left is replaced. One that is served is replaced only if
// the port is shared.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())

	cfg := Config{Jobs: "127.0.0.1:0", Admin: "127.0.0.1:0", Mesh: "unix:" + path, Shared: true}
	var first, second, third Ports
	require.NoError(t, first.Open(cfg))
	assert.Len(t, first.Addresses(), 3, "none of them is an upstream")
	cfg.Shared = false
	err = second.Open(cfg)
	assert.EqualError(t, err, "cannot listen on "+path+": another process serves it; choose another path with mesh.listen")
	second.Close()

	cfg.Shared = true
	require.NoError(t, third.Open(cfg))
	first.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err, "the socket of the next process stays when the first one ends")
	require.NoError(t, c.Close())
	third.Close()

	require.NoError(t, os.WriteFile(path+".txt", nil, 0o600))
	cfg.Mesh += ".txt"
	var fourth Ports
	assert.ErrorContains(t, fourth.Open(cfg), "choose another path", "a file is not removed")
	fourth.Close()
	assert.FileExists(t, path+".txt")
}

// patience is the maximum duration of a wait.
const patience = 2 * time.Minute

// After a process leaves a shared port, all new connections go to the next process.
func TestSharedPortPassesToTheNextProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports can be shared on Linux only; CI runs there")
	}
	cfg := Config{Jobs: "127.0.0.1:0", Admin: "127.0.0.1:0", Shared: true}
	var first, second Ports
	require.NoError(t, first.Open(cfg))
	defer first.Close()
	cfg.Jobs, cfg.Admin = Address(first.Jobs), Address(first.Admin)
	require.NoError(t, second.Open(cfg))
	defer second.Close()
	first.Leave(zap.NewNop())
	for _, port := range [][2]net.Listener{{first.Jobs, second.Jobs}, {first.Admin, second.Admin}} {
		go func() {
			for {
				c, err := port[0].Accept()
				if err != nil {
					return
				}
				assert.Fail(t, "a connection after the end", c.RemoteAddr())
				_ = c.Close()
			}
		}()
		require.NoError(t, port[1].(sharedPort).SetDeadline(time.Now().Add(patience)))
		for range 20 {
			c, err := net.Dial("tcp", Address(port[1]))
			require.NoError(t, err)
			taken, err := port[1].Accept()
			require.NoError(t, err)
			assert.Equal(t, c.LocalAddr().String(), taken.RemoteAddr().String())
			_ = c.Close()
			_ = taken.Close()
		}
	}
}

// The newer of two processes that share a port can leave, too: no connection is reset, although Linux gives it new ones until
// it closes its listener, and resets those that it has not accepted by then.
func TestTheNewerProcessLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports can be shared on Linux only; CI runs there")
	}
	cfg := Config{Jobs: "127.0.0.1:0", Admin: "127.0.0.1:0", Shared: true}
	var first Ports
	require.NoError(t, first.Open(cfg))
	defer first.Close()
	cfg.Jobs, cfg.Admin = Address(first.Jobs), Address(first.Admin)
	respond := func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("!"))
			_ = c.Close()
		}
	}
	go respond(first.Jobs)
	core, logs := observer.New(zap.WarnLevel)
	over := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				c, err := net.Dial("tcp", cfg.Jobs)
				if !assert.NoError(t, err) {
					return
				}
				_, err = c.Read(make([]byte, 1))
				assert.NoError(t, err)
				_ = c.Close()
			}
		})
	}
	for range 30 {
		var second Ports
		require.NoError(t, second.Open(cfg))
		go respond(second.Jobs)
		second.Leave(zap.New(core))
		second.Empty(zap.New(core))
		second.Close()
	}
	close(over)
	clients.Wait()
	assert.Zero(t, logs.Len())
}

func TestOccupiedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for shared, hint := range map[bool]string{false: "; choose", true: "; the process there must have been started with --reuse-port too, by the same user; or choose"} {
		var p Ports
		err := p.Open(Config{Jobs: "127.0.0.1:0", Admin: l.Addr().String(), Shared: shared})
		assert.EqualError(t, err, "cannot listen on "+l.Addr().String()+": bind: address already in use"+hint+" another address with --admin")
		p.Close()
	}
}

// handed returns a socket with a name, as systemd passes it, and its address.
func handed(t *testing.T, name string) (f *os.File, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer file.Close()
	fd, err := syscall.Dup(int(file.Fd()))
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), name), l.Addr().String()
}

// The name of a systemd socket determines its purpose.
func TestSystemdSocketPurposes(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"jobs", "admin", "jobs first, admin second"},
		{"admin", "jobs", "jobs second, admin first"},
		{"unknown", "unknown", "jobs first, admin second"},
		{"jobs", "jobs", "there is already a socket for this purpose"},
		{"admin", "admin", "there is already a socket for this purpose"},
	} {
		var p Ports
		a, first := handed(t, c.first)
		b, second := handed(t, c.second)
		err := errors.Join(p.take(a), p.take(b))
		if err != nil {
			assert.ErrorContains(t, err, c.want)
		} else {
			which := map[string]string{first: "first", second: "second"}
			assert.Equal(t, c.want, "jobs "+which[p.Jobs.Addr().String()]+", admin "+which[p.Admin.Addr().String()])
		}
		p.Close()
	}
}
