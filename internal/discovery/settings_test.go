package discovery

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

func TestSettingsRefuseInvalidValues(t *testing.T) {
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

func TestOwnAddresses(t *testing.T) {
	machine := func() ([]string, []netip.Addr, error) {
		return []string{"me.test", "me"}, []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")}, nil
	}
	loopback := "127.0.0.1:80 localhost:80 a.localhost:80 ip6-localhost:80 0.0.0.0:80 [::]:80"
	everywhere := loopback + " 127.0.0.2:80 [::1]:80 10.0.0.7:80 [fd00::7]:80 me:80 me.test:80"
	others := " 10.0.0.8:80 other:80 127.0.0.1:81 localhost:81 unix:/run/b 10.0.0.7:81 me:81"
	for listen, own := range map[string]string{
		"127.0.0.1:80":          loopback,
		"[::1]:80":              strings.Replace(loopback, "127.0.0.1:80", "[::1]:80", 1),
		"[::ffff:127.0.0.1]:80": loopback,
		"10.0.0.7:80":           "10.0.0.7:80",
		"[fd00::7%a]:80":        "[fd00::7]:80",
		"ME:80":                 "me:80",
		"unix:/run/a":           "unix:/run/a",
		":80":                   everywhere,
		"0.0.0.0:80":            everywhere,
		"[::]:80":               everywhere,
	} {
		o, err := newOwn([]string{listen}, machine)
		require.NoError(t, err)
		var got []string
		for _, address := range strings.Fields(everywhere + " unix:/run/a" + others) {
			if o.has(address) {
				got = append(got, address)
			}
		}
		assert.ElementsMatch(t, strings.Fields(own), got, listen)
	}
	for _, bad := range []string{"8080", "a:x", "a:0", "a b:1"} {
		_, err := newOwn([]string{bad}, machine)
		assert.ErrorContains(t, err, "own address")
	}
}

func TestNamesAndAddressesOfTheMachine(t *testing.T) {
	names, hosts, err := thisMachine()
	require.NoError(t, err)
	assert.NotEmpty(t, names)
	assert.Contains(t, hosts, netip.MustParseAddr("127.0.0.1"))
}
