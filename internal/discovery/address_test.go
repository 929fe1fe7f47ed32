package discovery

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func TestThisMachine(t *testing.T) {
	names, hosts, err := thisMachine()
	require.NoError(t, err)
	assert.NotEmpty(t, names)
	assert.Contains(t, hosts, netip.MustParseAddr("127.0.0.1"))
}
