package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:9001":           "10.0.0.1:9001",
		"Rules-1.Example.COM:80":  "rules-1.example.com:80",
		"[2001:DB8:0:0::1]:9001":  "[2001:db8::1]:9001",
		"[::ffff:10.0.0.1]:9001":  "10.0.0.1:9001",
		"a_b:65535":               "a_b:65535",
		"unix:/run//App-1/a.sock": "unix:/run/App-1/a.sock",
		"a:0080":                  "a:80",
	} {
		got, err := Address(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got)
		again, err := Address(got)
		require.NoError(t, err)
		assert.Equal(t, got, again)
	}
}

func TestAddressRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                              `"" is not host:port`,
		"a":                             `"a" is not host:port`,
		"::1:80":                        `"::1:80" is not host:port`,
		"a:http":                        `"a:http" is not host:port: the port is not between 1 and 65535`,
		"a:0":                           `"a:0" is not host:port: the port is not between 1 and 65535`,
		"a:65536":                       `"a:65536" is not host:port: the port is not between 1 and 65535`,
		":80":                           `host "" is not a name or an IP address`,
		"a b:80":                        `host "a b" is not a name or an IP address`,
		"a\n:80":                        `host "a\n" is not a name or an IP address`,
		"user@a:80":                     `host "user@a" is not a name or an IP address`,
		"unix:run/app.sock":             `"unix:run/app.sock" is not unix: and the absolute path of a socket, of letters, digits and /.-_@+=`,
		"unix:/run/a b":                 `"unix:/run/a b" is not unix: and the absolute path of a socket, of letters, digits and /.-_@+=`,
		"http://a:80":                   `"http://a:80" is a URL; write a:80`,
		"[fe80::1%eth0]:1":              `host "fe80::1%eth0" has a zone, which only its own machine knows`,
		strings.Repeat("a", 254) + ":1": `host "` + strings.Repeat("a", 77) + `..." is not a name or an IP address`,
	} {
		_, err := Address(in)
		assert.EqualError(t, err, want)
	}
}
