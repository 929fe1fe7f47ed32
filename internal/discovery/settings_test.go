package discovery

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

func TestSettingsRefuseNonsense(t *testing.T) {
	one := "discovery: exactly one of " + Kinds() + " must say where the upstreams are, not "
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{Settings{Static: []string{}}, one + "0 of them"},
		{Settings{Static: []string{"a b:1"}}, `discovery.static[0]: host "a b" is not a name or an IP address`},
		{Settings{Static: make([]string, maxUpstreams+1)}, "discovery.static: the list has 10001 upstreams, at most 10000 are allowed"},
		{Settings{DNS: "a b"}, `discovery.dns: "a b" is not a host name`},
		{Settings{DNS: ":80"}, `discovery.dns: "" is not a host name`},
		{Settings{Consul: &Consul{}}, "discovery.consul.service: a service is required"},
	} {
		assert.EqualError(t, faultOf(c.settings), c.want)
	}
}

// faultOf is what is wrong with settings.
func faultOf(s Settings) error {
	var f settings.Faults
	s.Check(f.In("discovery"))
	return f.Err()
}

// A file that is not there, or cannot be read, may be put right while pilotfish runs.
func TestFilesAreWarnedOf(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad")
	require.NoError(t, os.WriteFile(bad, []byte("a:1\nb:x y\n"), 0o600))
	for _, c := range []struct {
		settings  Settings
		key, want string
	}{
		{Settings{File: bad + "x"}, "file", bad + "x cannot be read: no such file or directory"},
		{Settings{File: folder}, "file", folder + " is not a regular file"},
		{Settings{File: bad}, "file", bad + `, line 2: "b:x" is not host:port: the port is not between 1 and 65535`},
		{Settings{Consul: &Consul{Service: "s", TokenFile: bad + "x"}}, "consul.token_file", "stat " + bad + "x: no such file or directory"},
		{Settings{Consul: &Consul{Service: "s", TokenFile: bad}}, "consul.token_file", bad + " is not one word of plain ASCII"},
	} {
		var f settings.Faults
		c.settings.Check(&f)
		assert.Equal(t, []settings.Fault{{Key: c.key, Text: c.want, Warning: true}}, f.All())
		_, err := New(configOf(c.settings))
		assert.NoError(t, err)
	}
}
