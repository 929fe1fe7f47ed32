package discovery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"example.org/pilotfish/internal/pool"
)

// zone is a resolver in memory.
type zone struct {
	mu   sync.Mutex
	ips  map[string]string // name -> addresses
	srv  []*net.SRV
	fail map[string]error
	hang bool
}

var (
	errNone   = &net.DNSError{Err: "no such host", IsNotFound: true}
	errServer = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	errHung   = &net.DNSError{Err: "i/o timeout", IsTimeout: true}
)

func (z *zone) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
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
	for _, text := range strings.Fields(z.ips[host]) {
		if ip := netip.MustParseAddr(text); ip.Is4() == (network == "ip4") {
			all = append(all, ip)
		}
	}
	if all == nil {
		return nil, errNone
	}
	return all, nil
}

func (z *zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
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

func dnsOf(t *testing.T, z *zone, name string, changes ...func(*Config)) *Discovery {
	t.Helper()
	c := configOf(Settings{DNS: name})
	c.Resolver = z
	for _, change := range changes {
		change(&c)
	}
	d, err := New(c)
	require.NoError(t, err)
	return d
}

// An error does not replace the set, nor does a resolver that hangs and goes on after an hour.
func TestDNSFailuresReplaceNothing(t *testing.T) {
	for _, err := range []error{errServer, errHung, errors.New("connection refused"), context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{ips: map[string]string{"rules": "10.0.0.1"}, fail: map[string]error{}}
			var reported []string
			d := dnsOf(t, z, "rules:1", troubles(&reported))
			z.after(15*time.Second, func() { z.fail["rules"], z.hang = err, errors.Is(err, context.DeadlineExceeded) })
			z.after(time.Hour, func() { z.fail["rules"], z.hang, z.ips["rules"] = nil, false, "10.0.0.1 10.0.0.2" })
			assert.Len(t, follow(t, d, time.Hour+20*time.Second), 2)
			assert.Equal(t, []string{"rules cannot be resolved: " + err.Error() + "; 1 upstream kept", ""}, reported)
		})
	}
}

func TestDNSNoSuchNameIsEmptinessOnceConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{ips: map[string]string{"rules": "10.0.0.1 10.0.0.2"}}
		var reported []string
		d := dnsOf(t, z, "rules:1", troubles(&reported))
		z.after(15*time.Second, func() { z.ips["rules"] = "" })
		all := follow(t, d, 2*time.Minute)
		require.Len(t, all, 2)
		assert.Empty(t, all[1].set)
		assert.GreaterOrEqual(t, all[1].after, 45*time.Second)
		assert.Less(t, all[1].after, 45*time.Second+dnsInterval*12/10+2*time.Second)
		const none = "rules does not exist or has no address (NXDOMAIN)"
		assert.Equal(t, []string{none + "; 2 upstreams kept for 30 s", none}, reported)
	})
}

func TestDNSServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		var troubled []string
		d := dnsOf(t, z, "_http._tcp.rules", troubles(&troubled))
		z.after(15*time.Second, func() { // a target is gone, another comes
			z.fail["p1.rules"] = errNone
			z.srv = append(z.srv, &net.SRV{Target: "p2.rules.", Port: 9001, Priority: 1})
		})
		z.after(35*time.Second, func() { z.fail["p0.rules"] = errServer })
		all := follow(t, d, 50*time.Second)
		require.Len(t, all, 2)
		assert.Equal(t, []pool.Upstream{{Address: "10.0.0.1:9001"}, {Address: "10.0.0.1:9003"}, {Address: "[fd00::2]:9002", Weight: 10}}, all[0].set)
		assert.Equal(t, "10.0.0.1:9001 10.0.0.1:9003 10.0.0.3:9001", names(all[1].set))
		assert.Equal(t, []string{
			"left out: target p1.rules: lookup : no such host",
			"_http._tcp.rules cannot be resolved: target p0.rules: lookup : server misbehaving; 3 upstreams kept",
		}, troubled)
	})
}

func TestDNSServicesThatNeverResolved(t *testing.T) {
	for want, z := range map[string]*zone{
		"rules cannot be resolved: target p0: lookup : server misbehaving": {srv: []*net.SRV{{Target: "p0.", Port: 1}}, fail: map[string]error{"p0": errServer}},
		`rules cannot be resolved: target "bad name" is not a host name`:   {srv: []*net.SRV{{Target: "bad name.", Port: 1}, {Target: "p0.", Port: 1}}, fail: map[string]error{"p0": errNone}},
		"rules cannot be resolved: lookup : server misbehaving":            {fail: map[string]error{"rules": errServer}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := dnsOf(t, z, "rules")
			assert.Empty(t, follow(t, d, time.Hour), "an error of a target is no emptiness")
			assert.Equal(t, want+"; no upstream is known yet", d.Status().Trouble)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		z := &zone{ips: map[string]string{"p0": "10.0.0.1"}, srv: []*net.SRV{{Target: "p0.", Port: 1}}}
		d := dnsOf(t, z, "rules")
		z.after(15*time.Second, func() { z.srv = []*net.SRV{{Target: "."}} })
		all := follow(t, d, time.Minute)
		require.Len(t, all, 2)
		assert.Empty(t, all[1].set)
		assert.Equal(t, `rules has the SRV target ".": the service is not available (RFC 2782)`, d.Status().Trouble)
	})
	synctest.Test(t, func(t *testing.T) {
		d := dnsOf(t, new(zone), "rules")
		follow(t, d, time.Second)
		assert.Contains(t, d.Status().Trouble, "rules does not exist or has no SRV record (NXDOMAIN); addresses need a port: rules:PORT")
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

	config := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(config, []byte("nameserver 127.0.0.53\nsearch one.test refused.test two.test.\n"), 0o600))
	resolver := system{&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, config}
	assert.Equal(t, []string{"one.test", "refused.test", "two.test."}, resolver.suffixes())
	assert.Empty(t, system{config: "/dev/zero"}.suffixes(), "which has no end")
	query := func(name string) (reply, error) {
		s := Settings{DNS: name}
		from, err := s.openDNS(&Config{Resolver: resolver})
		require.NoError(t, err)
		return from.query(t.Context(), 0)
	}
	for name, want := range map[string]string{
		"rules.test.:9001":       "10.0.0.1:9001 10.0.0.2:9001",
		"six.test.:9001":         "[fd00::1]:9001",
		"_http._tcp.rules.test.": "10.0.0.1:9007 10.0.0.2:9007",
		"nothing.test.:1":        "-",
	} {
		a, err := query(name)
		require.NoError(t, err)
		require.NoError(t, a.skipReason)
		assert.Equal(t, want, names(arrange(a.upstreams, own{})))
	}
	for _, name := range []string{"nothing:1", "nothing"} {
		_, err := query(name)
		assert.ErrorContains(t, err, "server misbehaving", "refused with one suffix of the search list, it may exist")
	}
}

// serveDNS replies from a fixed zone until conn is closed. Names outside it do not exist.
func serveDNS(conn net.PacketConn) {
	type question struct {
		name string
		kind dnsmessage.Type
	}
	six := []dnsmessage.ResourceBody{&dnsmessage.AAAAResource{AAAA: [16]byte{0: 0xfd, 15: 1}}}
	records := map[question][]dnsmessage.ResourceBody{
		{"rules.test.", dnsmessage.TypeA}:              {&dnsmessage.AResource{A: [4]byte{10, 0, 0, 2}}, &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}}},
		{"rules.test.", dnsmessage.TypeAAAA}:           six,
		{"six.test.", dnsmessage.TypeAAAA}:             six,
		{"_http._tcp.rules.test.", dnsmessage.TypeSRV}: {&dnsmessage.SRVResource{Port: 9007, Target: dnsmessage.MustNewName("rules.test.")}},
	}
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
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		q := m.Questions[0]
		m.RCode = dnsmessage.RCodeNameError
		for asked, bodies := range records {
			if asked.name == q.Name.String() {
				m.RCode = dnsmessage.RCodeSuccess
			}
			if asked == (question{q.Name.String(), q.Type}) {
				for _, body := range bodies {
					header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: body})
				}
			}
		}
		if strings.HasSuffix(q.Name.String(), ".refused.test.") {
			m.RCode = dnsmessage.RCodeRefused
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from) // a lost reply fails the test by itself
		}
	}
}
