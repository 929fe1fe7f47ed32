package discovery

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

func TestStaticSendsItsListOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := configOf(Settings{Static: []string{"B:1", "a:1", "b:1", "127.0.0.1:8080", "localhost:8080"}})
		c.Self = []string{"127.0.0.1:8080"}
		d, err := New(c)
		require.NoError(t, err)
		assert.Equal(t, "a b", sets(follow(t, d, time.Hour)))
		assert.Equal(t, "static list", d.Status().Source)
		assert.EqualValues(t, 1, d.Status().Applied)
		c.Self = []string{"a"}
		_, err = New(c)
		assert.EqualError(t, err, `discovery: own address "a" is not host:port; the port is missing: write a:PORT`)
	})
}

func TestRunReturnsAtOnceWhenCancelled(t *testing.T) {
	for name, first := range map[string]scripted{"during a query": {hang: true}, "during a pause": {refuse: true}} {
		synctest.Test(t, func(t *testing.T) {
			d := consulOf(t, &agent{replies: []scripted{first}}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			start := time.Now()
			d.Run(ctx, nil)
			assert.Equal(t, 500*time.Millisecond, time.Since(start), name)
		})
	}
}

func TestTooManyUpstreamsAreNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", many(maxUpstreams+1)).late(time.Second), {hang: true}}}
		d := consulOf(t, a, nil)
		assert.Equal(t, "a b", sets(follow(t, d, 3*time.Second)))
		assert.Equal(t, "consul service rules at consul.test:8500 names 10001 upstreams, and at most 10000 are allowed; 2 upstreams kept", d.Status().Trouble)
	})
}

// Trouble is reported as a message, once and then on change. Its end is reported when a list is accepted in full.
func TestTroubleIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		reset := scripted{err: "read tcp 127.0.0.1:%d->127.0.0.1:8500: connection reset by peer"}
		a := &agent{replies: []scripted{
			list("10", "a b c"), list("11", "").late(5 * time.Second), list("11", "").late(5 * time.Second), reset, reset, reset,
			list("12", "b").late(time.Second), {index: "13", body: `[null,null,` + entries("a b c")[1:], after: time.Second},
			list("14", "a b c").late(time.Second), {hang: true}, {hang: true}, list("15", "a b c"), list("15", "a b c").quiet(),
		}}
		d := consulOf(t, a, func(c *Config) {
			c.Changed = func(s Status) {
				reported = append(reported, s.Trouble)
				if s.Trouble == "" {
					assert.Equal(t, time.Now(), s.AcceptedAt)
					assert.Empty(t, s.Text())
					return
				}
				assert.Equal(t, time.Now(), s.Since, "since this trouble began, not an earlier one")
				assert.Equal(t, "discovery, since "+settings.Minute(s.Since)+": "+s.Trouble, s.Text())
			}
		})
		start := time.Now()
		follow(t, d, time.Hour)
		assert.Equal(t, []string{
			"consul service rules at consul.test:8500 names no upstream; 3 upstreams kept for 30 s",
			"the Consul agent gives no reply: read tcp 127.0.0.1:8500: connection reset by peer; 3 upstreams kept",
			"consul service rules at consul.test:8500 lacks 2 of 3 upstreams; 2 upstreams kept for 10 s",
			"left out: an instance is null, and 1 more",
			"",
			"the Consul agent gives no reply: timeout; 3 upstreams kept",
			"",
		}, reported)
		s := d.Status()
		assert.Equal(t, 3, s.Upstreams)
		assert.Equal(t, []uint64{1, 3, 5}, []uint64{s.Applied, s.Refused, s.Failed})
		assert.True(t, s.AcceptedAt.After(start))
	})
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		a := &agent{replies: []scripted{{refuse: true}, {refuse: true}, list("2", ""), list("2", "").late(30 * time.Second), list("3", "me").late(time.Minute), list("3", "me").quiet()}}
		d := consulOf(t, a, func(c *Config) { c.Self = []string{"me:1"}; troubles(&reported)(c) })
		follow(t, d, time.Hour)
		assert.Equal(t, []string{
			"the Consul agent gives no reply: dial tcp 127.0.0.1:8500: connect: connection refused; no upstream is known yet",
			"consul service rules at consul.test:8500 names no upstream; no upstream is known yet",
			"consul service rules at consul.test:8500 names no upstream",
			"consul service rules at consul.test:8500 names no upstream but this sidecar",
		}, reported)
	})
}

func TestTheReceiverOwnsTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", "a b c").late(time.Second), list("11", "a b c").quiet()}}
		d := consulOf(t, a, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		d.Run(ctx, func(set []pool.Upstream) {
			got = append(got, names(set))
			clear(set)
			if len(got) == 2 {
				cancel()
			}
		})
		assert.Equal(t, []string{"a b", "a b c"}, got)
	})
}

// An upstream to which a connection has ended at the sidecar itself leaves the set, whatever its address says.
func TestUpstreamThatIsTheSidecarLeavesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a me"), list("11", "a b me").late(time.Minute), list("11", "a b me").quiet()}}
		d := consulOf(t, a, nil)
		assert.False(t, d.LeadsHere("me:1"), "nothing is in force yet")
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		go d.Run(ctx, func(set []pool.Upstream) { got = append(got, names(set)) })
		time.Sleep(time.Second)
		assert.False(t, d.LeadsHere("b:1"), "it is not in the set")
		assert.True(t, d.LeadsHere("me:1"))
		assert.False(t, d.LeadsHere("me:1"), "it was left out before")
		time.Sleep(2 * time.Minute)
		cancel()
		synctest.Wait()
		assert.False(t, d.LeadsHere("a:1"), "it no longer runs")
		assert.Equal(t, []string{"a me", "a", "a b"}, got)
	})
}

// After an empty list was accepted, a failure does not read as if no list had been accepted yet, also not after a reload.
func TestTroubleAfterAnEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b c"), list("11", ""), list("11", "").late(30 * time.Second), {refuse: true}}}
		d := consulOf(t, a, nil)
		assert.Equal(t, "a b c | -", sets(follow(t, d, 5*time.Minute)))
		want := "the Consul agent gives no reply: dial tcp 127.0.0.1:8500: connect: connection refused; " +
			"no upstream is known: the last accepted list, of " + settings.Minute(d.Status().AcceptedAt) + ", had none"
		assert.Equal(t, want, d.Status().Trouble)
		assert.Greater(t, time.Since(d.Status().Since), time.Minute, "further failures are the same trouble")

		next := consulOf(t, &agent{replies: []scripted{{refuse: true}}}, func(c *Config) { c.Before = d.Status() })
		follow(t, next, time.Minute)
		assert.Equal(t, want, next.Status().Trouble)
	})
}

// One Discovery after another, as at a reload: what the source says in its
// bad hours is doubted as if there had been only one.
func TestTheLastSetIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		a := &agent{replies: []scripted{{refuse: true}, list("10", "a"), list("11", "a b c d").quiet()}}
		before := Status{AcceptedAt: time.Now(), Trouble: "the Consul agent gives no reply: dial tcp 127.0.0.1:8500: connect: connection refused; 4 upstreams kept"}
		d := consulOf(t, a, func(c *Config) {
			c.Last = []pool.Upstream{{Address: "a:1"}, {Address: "b:1"}, {Address: "c:1"}, {Address: "d:1"}}
			c.Before = before
			troubles(&reported)(c)
		})
		assert.Equal(t, 4, d.Status().Upstreams)
		assert.Equal(t, before.AcceptedAt, d.Status().AcceptedAt)
		assert.Equal(t, "a b c d", sets(follow(t, d, time.Minute)))
		assert.EqualValues(t, 1, d.Status().Refused)
		assert.Equal(t, []string{"consul service rules at consul.test:8500 lacks 3 of 4 upstreams; 3 upstreams kept for 10 s", ""}, reported, "what was reported is not reported again")
	})
}

func TestAListThatIsTooLong(t *testing.T) {
	err := faultOf(Settings{Static: make([]string, maxUpstreams+1)})
	assert.EqualError(t, err, "discovery.static: the list has 10001 upstreams, at most 10000 are allowed")
}

// faultOf returns the fault of settings.
func faultOf(s Settings) error {
	var f settings.Faults
	s.Check(f.In("discovery"))
	return f.Err()
}

// A missing or unreadable file is only a warning: it can be fixed while pilotfish runs.
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
		{Settings{Consul: &Consul{Service: "s", TokenFile: bad + "x"}}, "consul.token_file", bad + "x cannot be read: no such file or directory"},
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
