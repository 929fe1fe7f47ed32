package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
)

// A socket that a process left behind makes room. One that is served does so
// only for a process that takes over.
func TestASocketInTheFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())

	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Mesh.Listen = "127.0.0.1:0", "127.0.0.1:0", "unix:"+path
	cfg.ReusePort = true
	var first, second, third ports
	require.NoError(t, first.open(&cfg, zap.NewNop()))
	assert.Len(t, first.addresses(), 2, "nobody takes a path for an upstream")
	cfg.ReusePort = false
	err = second.open(&cfg, zap.NewNop())
	assert.EqualError(t, err, "cannot listen on "+path+": another process serves it; choose another path with mesh.listen")
	second.Close()

	cfg.ReusePort = true
	require.NoError(t, third.open(&cfg, zap.NewNop()))
	first.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err, "the socket of the next process stays when the first one ends")
	require.NoError(t, c.Close())
	third.Close()

	require.NoError(t, os.WriteFile(path+".txt", nil, 0o600))
	cfg.Mesh.Listen += ".txt"
	var fourth ports
	assert.ErrorContains(t, fourth.open(&cfg, zap.NewNop()), "choose another path", "a file is not removed")
	fourth.Close()
	assert.FileExists(t, path+".txt")
}
