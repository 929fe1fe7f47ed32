package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/settings"
)

func TestSectionsBeginWithTheirDefaults(t *testing.T) {
	for text, want := range map[string]Settings{
		"static: [a:1]":                       {Static: []string{"a:1"}},
		"file: {path: x}":                     {File: &File{Path: "x", Interval: 2 * time.Second}},
		"file: {path: x, interval: 3s}":       {File: &File{Path: "x", Interval: 3 * time.Second}},
		"dns: {name: x, port: 1}":             {DNS: &DNS{Name: "x", Record: "A", Port: 1, Interval: 10 * time.Second}},
		"consul: {service: x}":                {Consul: &Consul{Service: "x", Wait: time.Minute, KeepLast: 30 * time.Second}},
		"consul: {service: x, keep_last: 0s}": {Consul: &Consul{Service: "x", Wait: time.Minute}},
	} {
		var got Settings
		_, err := cli.NewDocument("x", []byte(text)).Decode(&got, func(f *settings.Faults) { got.Check(f) })
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestSettingsRefuseNonsense(t *testing.T) {
	file := func(change func(*File)) Settings {
		c := File{Path: "x", Interval: time.Second}
		change(&c)
		return Settings{File: &c}
	}
	dns := func(change func(*DNS)) Settings {
		c := DNS{Name: "a", Port: 1, Record: recordA, Interval: time.Second}
		change(&c)
		return Settings{DNS: &c}
	}
	consul := func(change func(*Consul)) Settings {
		c := Consul{Service: "a", Wait: time.Second}
		change(&c)
		return Settings{Consul: &c}
	}
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{Settings{}, "discovery: exactly one of static, file, dns, consul and kubernetes must say where the upstreams are, not 0 of them"},
		{Settings{Static: []string{}}, "discovery: exactly one of static, file, dns, consul and kubernetes must say where the upstreams are, not 0 of them"},
		{Settings{Static: []string{"a:1"}, File: &File{}}, "discovery: exactly one of static, file, dns, consul and kubernetes must say where the upstreams are, not 2 of them"},
		{Settings{Static: []string{"a:1", "b"}}, `discovery.static[1]: "b" is not host:port`},
		{Settings{Static: []string{"a b:1"}}, `discovery.static[0]: host "a b" is not a name or an IP address`},
		{Settings{Static: make([]string, maxUpstreams+1)}, "discovery.static: the list has 10001 upstreams, at most 10000 are allowed"},

		{file(func(c *File) { c.Path = "" }), "discovery.file.path: a path is required"},
		{file(func(c *File) { c.Interval = time.Millisecond }), "discovery.file.interval: 1ms is less than 1s"},
		{file(func(c *File) { c.Interval = 0 }), "discovery.file.interval: 0s is less than 1s"},

		{dns(func(c *DNS) { c.Name = "" }), "discovery.dns.name: a name is required"},
		{dns(func(c *DNS) { c.Name = "a b" }), `discovery.dns.name: "a b" is not a host name`},
		{dns(func(c *DNS) { c.Port = 0 }), "discovery.dns.port: a port is required, except for SRV records"},
		{dns(func(c *DNS) { c.Port, c.Record = 65536, recordAAAA }), "discovery.dns.port: 65536 is not between 1 and 65535"},
		{dns(func(c *DNS) { c.Record = recordSRV }), "discovery.dns.port: 1 must be left out: SRV records have their own ports"},
		{dns(func(c *DNS) { c.Record = "MX" }), `discovery.dns.record: "MX" is not one of A, AAAA, SRV`},
		{dns(func(c *DNS) { c.Interval = time.Millisecond }), "discovery.dns.interval: 1ms is less than 1s"},

		{consul(func(c *Consul) { c.Service = "" }), "discovery.consul.service: a service is required"},
		{consul(func(c *Consul) { c.Service = "a/b" }), `discovery.consul.service: "a/b" must not contain / ? or #`},
		{consul(func(c *Consul) { c.Address = "ftp://x" }), `discovery.consul.address: "ftp://x" must begin with http, https or unix`},
		{consul(func(c *Consul) { c.Address, c.TLS.CAFile = "http://x", "ca" }), `discovery.consul.address: "http://x" must begin with https where tls is set`},
		{consul(func(c *Consul) { c.TLS.CertFile = "c" }), "discovery.consul.tls: cert_file and key_file need each other"},
		{consul(func(c *Consul) { c.Wait = time.Millisecond }), "discovery.consul.wait: 1ms is not between 1s and 10m0s"},
		{Settings{Kubernetes: &Kubernetes{Service: "s", Family: familyIPv4, Wait: time.Hour}}, "discovery.kubernetes.wait: 1h0m0s is not between 1s and 10m0s"},
		{consul(func(c *Consul) { c.KeepLast = -time.Second }), "discovery.consul.keep_last: -1s must not be negative"},
		{consul(func(c *Consul) { c.TLS.CAFile = "/no/ca" }), "discovery: consul: tls: Error loading CA File: open /no/ca: no such file or directory"},
	} {
		_, err := New(Config{Settings: c.settings, Rand: seeded()})
		require.Error(t, err)
		assert.Equal(t, c.want, strings.Split(err.Error(), "\n")[0])
	}
}
