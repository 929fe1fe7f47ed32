package discovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSelfAddresses(t *testing.T) {
	local := func() ([]string, error) { return []string{"localhost", "10.0.0.7", "::1"}, nil }
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080 localhost:8080",
		"localhost:8080": "localhost:8080",
		"unix:/run/a":    "unix:/run/a",
		"10.0.0.7:8080":  "10.0.0.7:8080",
		"[::1]:8080":     "[::1]:8080 localhost:8080",
		"ME:1":           "me:1",
		"[fe80::1%a]:1":  "[fe80::1]:1",
		":8080":          "10.0.0.7:8080 [::1]:8080 localhost:8080",
		"0.0.0.0:8080":   "10.0.0.7:8080 [::1]:8080 localhost:8080",
		"[::]:8080":      "10.0.0.7:8080 [::1]:8080 localhost:8080",
	} {
		o, err := selfAddresses([]string{listen}, local)
		require.NoError(t, err)
		var got []string
		for a := range o {
			got = append(got, a)
		}
		assert.ElementsMatch(t, strings.Fields(want), got, listen)
	}
	for _, bad := range []string{"8080", "a:x", "a:0", "a b:1"} {
		_, err := selfAddresses([]string{bad}, nil)
		assert.ErrorContains(t, err, "own address")
	}
}

func TestThisMachinesHosts(t *testing.T) {
	all, err := localHosts()
	require.NoError(t, err)
	assert.Subset(t, all, []string{"127.0.0.1", "::1", "localhost"})
	assert.Greater(t, len(all), 3, "beside those it has the addresses of its interfaces")
}
