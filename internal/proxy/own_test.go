package proxy_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
)

// No spelling of its own addresses makes a sidecar connect to itself.
func TestNoConnectionEndsAtTheSidecarItself(t *testing.T) {
	listen := func(network, address string) (own, port string) {
		l, err := net.Listen(network, address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		if network == "unix" {
			return "unix:" + address, ""
		}
		_, port, err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		return l.Addr().String(), port
	}
	name, err := os.Hostname()
	require.NoError(t, err)
	loopback, port := listen("tcp4", "127.0.0.1:0")
	everywhere, all := listen("tcp4", "0.0.0.0:0")
	other, _ := listen("tcp4", "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "jobs")
	socket, _ := listen("unix", path)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	found := ""
	dial := proxy.Elsewhere([]string{loopback, everywhere, socket}, proxy.DialUpstream, func(address string) { found = address })
	for _, address := range []string{
		loopback, "localhost:" + port, "0.0.0.0:" + port, "[::]:" + port, "[::ffff:127.0.0.1]:" + port, socket, "unix:" + link,
		"127.0.0.1:" + all, "127.0.0.2:" + all, "0.0.0.0:" + all, name + ":" + all,
	} {
		_, err := dial(t.Context(), "tcp", address)
		assert.ErrorContains(t, err, "this sidecar's own", address)
		assert.Equal(t, address, found)
	}
	found = ""
	c, err := dial(t.Context(), "tcp", other)
	require.NoError(t, err)
	assert.Empty(t, found)
	require.NoError(t, c.Close())
}

// A job that comes back nevertheless, as through another sidecar or a port that is forwarded, does so a few times.
func TestACircleEnds(t *testing.T) {
	w := newListener(t)
	for name, visits := range map[string][]int{"one sidecar": {6}, "two sidecars": {4, 3}} {
		var circle []*sidecar
		for range visits {
			circle = append(circle, startSidecar(t, setup{}))
		}
		for i, c := range circle {
			c.balancer.Set([]pool.Upstream{{Address: circle[(i+1)%len(circle)].address}})
		}
		res, _ := circle[0].post("{}")
		assert.Equal(t, 508, res.StatusCode, name)
		assert.Equal(t, "loop", res.Header.Get("Pilotfish-Reason"))
		for i, c := range circle {
			c.seen(visits[i])
		}
	}
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	res, _ := c.post("{}")
	assert.Equal(t, 200, res.StatusCode)
	assert.NotContains(t, w.take()[0], "Pilotfish-Hops", "other jobs do not have the header")
}
