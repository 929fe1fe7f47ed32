package discovery

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// TestDNSOverTheWire resolves with the resolver of the standard library from
// a small server on loopback.
func TestDNSOverTheWire(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() { defer close(served); serveDNS(conn) }()
	defer func() { conn.Close(); <-served }()

	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	for _, c := range []struct {
		cfg  DNSConfig
		want string
	}{
		{DNSConfig{Name: "rules.test.", Port: 9001}, "10.0.0.1:9001 10.0.0.2:9001"},
		{DNSConfig{Name: "rules.test.", Port: 9001, Record: RecordAAAA}, "[fd00::1]:9001"},
		{DNSConfig{Name: "_http._tcp.rules.test.", Record: RecordSRV}, "10.0.0.1:9007 10.0.0.2:9007"},
		{DNSConfig{Name: "nothing.test.", Port: 1}, ""},
	} {
		c.cfg.Addresses, c.cfg.Services = resolver, resolver
		from, err := newDNS(c.cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		a, err := from.ask(ctx, 0)
		cancel()
		require.NoError(t, err)
		require.NoError(t, a.flaw)
		assert.Equal(t, c.want, addresses(arrange(a.upstreams, nil)))
	}
}

// serveDNS answers from a fixed zone until conn is closed. Names outside it do not exist.
func serveDNS(conn net.PacketConn) {
	name := dnsmessage.MustNewName("rules.test.")
	service := dnsmessage.MustNewName("_http._tcp.rules.test.")
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		q := m.Questions[0]
		add := func(body dnsmessage.ResourceBody) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}, Body: body,
			})
		}
		switch {
		case q.Name == name && q.Type == dnsmessage.TypeA:
			add(&dnsmessage.AResource{A: [4]byte{10, 0, 0, 2}})
			add(&dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}})
		case q.Name == name && q.Type == dnsmessage.TypeAAAA:
			add(&dnsmessage.AAAAResource{AAAA: [16]byte{0: 0xfd, 15: 1}})
		case q.Name == service && q.Type == dnsmessage.TypeSRV:
			add(&dnsmessage.SRVResource{Port: 9007, Target: name})
		case q.Name != name && q.Name != service:
			m.RCode = dnsmessage.RCodeNameError
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from) // a lost answer fails the test by itself
		}
	}
}
