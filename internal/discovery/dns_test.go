package discovery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"example.org/pilotfish/internal/pool"
)

// zone is a resolver in memory.
type zone struct {
	mu     sync.Mutex
	ips    map[string]string // name -> addresses
	srv    []*net.SRV
	fail   map[string]error
	hang   bool
	asked  int
	family []string
}

var (
	errNone    = &net.DNSError{Err: "no such host", IsNotFound: true}
	errServer  = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	errTimeout = &net.DNSError{Err: "i/o timeout", IsTimeout: true}
)

func (z *zone) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	z.family = append(z.family, network)
	if z.hang {
		z.mu.Unlock()
		<-ctx.Done()
		z.mu.Lock()
		return nil, ctx.Err()
	}
	if err := z.fail[host]; err != nil {
		return nil, err
	}
	var all []netip.Addr
	for _, ip := range strings.Fields(z.ips[host]) {
		all = append(all, netip.MustParseAddr(ip))
	}
	if all == nil {
		return nil, errNone
	}
	return all, nil
}

func (z *zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	if service != "" || proto != "" {
		return "", nil, errors.New("want the name as it is")
	}
	if err := z.fail[name]; err != nil {
		return "", z.srv, err
	}
	if len(z.srv) == 0 {
		return "", nil, errNone
	}
	return name, z.srv, nil
}

// after changes the zone later on.
func (z *zone) after(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		z.mu.Lock()
		defer z.mu.Unlock()
		change()
	})
}

// named is DNS with the defaults.
func named(name, record string, port int) DNS {
	var c DNS
	c.SetDefaults()
	c.Name, c.Record, c.Port = name, record, port
	return c
}

func dnsOf(t *testing.T, z *zone, c DNS) *Discovery {
	t.Helper()
	d, err := New(Config{Settings: Settings{DNS: &c}, Rand: seeded(), Resolver: z})
	require.NoError(t, err)
	return d
}

func addresses(set []pool.Upstream) string {
	var all []string
	for _, u := range set {
		all = append(all, u.Address)
	}
	return strings.Join(all, " ")
}

func TestDNSFollowsAddresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{ips: map[string]string{"rules": "10.0.0.2 10.0.0.1 10.0.0.2"}}
		d := dnsOf(t, z, named("rules", recordA, 9001))
		z.after(25*time.Second, func() { z.ips["rules"] = "10.0.0.2 10.0.0.1 10.0.0.3" })
		all := follow(t, d, time.Minute)
		require.Len(t, all, 2)
		assert.Equal(t, "10.0.0.1:9001 10.0.0.2:9001", addresses(all[0].set))
		assert.Equal(t, "10.0.0.1:9001 10.0.0.2:9001 10.0.0.3:9001", addresses(all[1].set))
		assert.Zero(t, all[0].after)
		assert.GreaterOrEqual(t, z.asked, 5)
		assert.LessOrEqual(t, z.asked, 7)
		assert.Equal(t, "ip4", z.family[0])
	})
}

func TestDNSFailuresReplaceNothing(t *testing.T) {
	for _, err := range []error{errServer, errTimeout, errors.New("connection refused")} {
		bubble(t, func(t *testing.T) {
			z := &zone{ips: map[string]string{"rules": "10.0.0.1"}, fail: map[string]error{}}
			d := dnsOf(t, z, named("rules", recordA, 1))
			z.after(15*time.Second, func() { z.fail["rules"] = err })
			assert.Len(t, follow(t, d, time.Hour), 1)
			assert.ErrorIs(t, d.Status().Err, err)
			assert.Equal(t, 1, d.Status().Upstreams)
		})
	}
}

func TestDNSHanging(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{ips: map[string]string{"rules": "10.0.0.1"}}
		d := dnsOf(t, z, named("rules", recordA, 1))
		z.after(15*time.Second, func() { z.hang = true })
		z.after(time.Hour, func() { z.hang = false; z.ips["rules"] += " 10.0.0.2" })
		all := follow(t, d, time.Hour+20*time.Second)
		require.Len(t, all, 2)
		assert.NoError(t, d.Status().Err)
	})
}

func TestDNSNoSuchNameIsEmptinessOnceConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{ips: map[string]string{"rules": "10.0.0.1"}}
		d := dnsOf(t, z, named("rules", recordA, 1))
		z.after(15*time.Second, func() { z.ips["rules"] = "" })
		all := follow(t, d, 2*time.Minute)
		require.Len(t, all, 2)
		assert.Empty(t, all[1].set)
		assert.GreaterOrEqual(t, all[1].after, 15*time.Second+defaultKeepLast)
		assert.Less(t, all[1].after, 15*time.Second+12*time.Second+defaultKeepLast+2*time.Second)
	})
}

func TestDNSServices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{
			ips: map[string]string{"p0.rules": "10.0.0.1 fd00::1", "p1.rules": "fd00::2", "p2.rules": "10.0.0.3"},
			srv: []*net.SRV{
				{Target: "p1.rules.", Port: 9002, Priority: 1, Weight: 10},
				{Target: "p9.rules.", Port: 9009, Priority: 2},
				{Target: "p0.rules.", Port: 9001, Priority: 1},
				{Target: "p0.rules.", Port: 9003, Priority: 1},
			},
			fail: map[string]error{},
		}
		d := dnsOf(t, z, named("_http._tcp.rules", recordSRV, 0))
		z.after(15*time.Second, func() { // a target fails, another comes
			z.fail["p0.rules"] = errServer
			z.srv = append(z.srv, &net.SRV{Target: "p2.rules.", Port: 9001, Priority: 1})
		})
		z.after(35*time.Second, func() { // all fail
			z.fail["p1.rules"], z.fail["p2.rules"] = errServer, errNone
		})
		all := follow(t, d, 50*time.Second)
		require.Len(t, all, 2)
		assert.Equal(t, []pool.Upstream{{Address: "10.0.0.1:9001"}, {Address: "10.0.0.1:9003"}, {Address: "[fd00::2]:9002", Weight: 10}}, all[0].set)
		assert.Equal(t, "10.0.0.1:9001 10.0.0.1:9003 10.0.0.3:9001 [fd00::2]:9002", addresses(all[1].set))
		s := d.Status()
		assert.NoError(t, s.Err)
		assert.ErrorIs(t, s.Flaw, errServer)
		assert.ErrorContains(t, s.Flaw, "resolve target p0.rules: ")
		assert.Equal(t, 4, s.Upstreams)
	})
}

func TestDNSServicesThatNeverResolved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{srv: []*net.SRV{{Target: "p0.", Port: 1}, {Target: "bad name.", Port: 1}}, fail: map[string]error{"p0": errServer}}
		d := dnsOf(t, z, named("rules", recordSRV, 0))
		assert.Empty(t, follow(t, d, time.Hour), "an error of a target is no emptiness")
		assert.ErrorContains(t, d.Status().Err, "resolve rules: resolve target p0: ")
		assert.ErrorContains(t, d.Status().Err, `target "bad name" is not a host name`)
	})
}

func TestDNSServicesFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{fail: map[string]error{"rules": errServer}}
		d := dnsOf(t, z, named("rules", recordSRV, 0))
		assert.Empty(t, follow(t, d, time.Hour))
		assert.ErrorIs(t, d.Status().Err, errServer)
	})
}

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
		cfg  DNS
		want string
	}{
		{named("rules.test.", recordA, 9001), "10.0.0.1:9001 10.0.0.2:9001"},
		{named("rules.test.", recordAAAA, 9001), "[fd00::1]:9001"},
		{named("_http._tcp.rules.test.", recordSRV, 0), "10.0.0.1:9007 10.0.0.2:9007"},
		{named("nothing.test.", recordA, 1), ""},
	} {
		from := newDNS(c.cfg, resolver)
		a, err := from.source.ask(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, a.flaw)
		assert.Equal(t, c.want, addresses(arrange(a.upstreams, nil)))
	}
}

// serveDNS replies from a fixed zone until conn is closed. Names outside it do not exist.
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
			_, _ = conn.WriteTo(packed, from) // a lost reply fails the test by itself
		}
	}
}
