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

func dnsOf(t *testing.T, z *zone, c DNSConfig) *Discovery {
	t.Helper()
	c.Addresses, c.Services = z, z
	d, err := New(Config{DNS: &c}, seeded())
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
		d := dnsOf(t, z, DNSConfig{Name: "rules", Port: 9001})
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
			d := dnsOf(t, z, DNSConfig{Name: "rules", Port: 1})
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
		d := dnsOf(t, z, DNSConfig{Name: "rules", Port: 1})
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
		d := dnsOf(t, z, DNSConfig{Name: "rules", Port: 1})
		z.after(15*time.Second, func() { z.ips["rules"] = "" })
		all := follow(t, d, 2*time.Minute)
		require.Len(t, all, 2)
		assert.Empty(t, all[1].set)
		assert.GreaterOrEqual(t, all[1].after, 15*time.Second+DefaultHoldEmpty)
		assert.Less(t, all[1].after, 15*time.Second+12*time.Second+DefaultHoldEmpty+2*time.Second)
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
		d := dnsOf(t, z, DNSConfig{Name: "_http._tcp.rules", Record: RecordSRV})
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
		d := dnsOf(t, z, DNSConfig{Name: "rules", Record: RecordSRV})
		assert.Empty(t, follow(t, d, time.Hour), "an error of a target is no emptiness")
		assert.ErrorContains(t, d.Status().Err, "resolve rules: resolve target p0: ")
		assert.ErrorContains(t, d.Status().Err, `target "bad name": want a host name`)
	})
}

func TestDNSServicesFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		z := &zone{fail: map[string]error{"rules": errServer}}
		d := dnsOf(t, z, DNSConfig{Name: "rules", Record: RecordSRV})
		assert.Empty(t, follow(t, d, time.Hour))
		assert.ErrorIs(t, d.Status().Err, errServer)
	})
}

func TestDNSRefusesNonsense(t *testing.T) {
	for want, c := range map[string]DNSConfig{
		`discovery: dns: name "": want a host name`:                  {Port: 1},
		`discovery: dns: name "a b": want a host name`:               {Name: "a b", Port: 1},
		"discovery: dns: port 0: want 1 to 65535":                    {Name: "a"},
		"discovery: dns: port 65536: want 1 to 65535":                {Name: "a", Port: 65536, Record: RecordAAAA},
		"discovery: dns: port 1: SRV records have their own":         {Name: "a", Port: 1, Record: RecordSRV},
		`discovery: dns: record "MX": want A, AAAA or SRV`:           {Name: "a", Port: 1, Record: "MX"},
		"discovery: dns: an interval of 1ms: want at least 1s":       {Name: "a", Port: 1, Interval: time.Millisecond},
		"discovery: dns: a timeout of -1s: want a positive duration": {Name: "a", Port: 1, Timeout: -time.Second},
	} {
		_, err := New(Config{DNS: &c}, seeded())
		assert.EqualError(t, err, want)
	}
}
