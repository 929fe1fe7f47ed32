package discovery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestStaticSendsItsListOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := configOf(Settings{Static: []string{"B:1", "a:1", "b:1", "127.0.0.1:8080", "localhost:8080"}})
		c.Self = []string{"127.0.0.1:8080"}
		d, err := New(c)
		require.NoError(t, err)
		assert.Equal(t, "a b", sets(follow(t, d, time.Hour)))
		assert.Equal(t, "static list", d.Status().Source)
		assert.EqualValues(t, 1, d.Status().Applied)
		c.Self = []string{"a"}
		_, err = New(c)
		assert.EqualError(t, err, `discovery: own address "a" is not host:port`)
	})
}

func TestRunReturnsAtOnceWhenCancelled(t *testing.T) {
	for name, a := range map[string]*agent{
		"while asking":  {replies: []scripted{{hang: true}}},
		"while pausing": {replies: []scripted{{refuse: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := consulOf(t, a, nil)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(500*time.Millisecond, cancel)
				start := time.Now()
				d.Run(ctx, nil)
				assert.Equal(t, 500*time.Millisecond, time.Since(start))
			})
		})
	}
}

func TestTooManyUpstreamsAreNoReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", many(maxUpstreams+1)).late(time.Second), {hang: true}}}
		d := consulOf(t, a, nil)
		assert.Equal(t, "a b", sets(follow(t, d, 3*time.Second)))
		assert.Equal(t, "consul service rules at consul.test:8500 names 10001 upstreams, and at most 10000 are allowed; 2 upstreams kept", d.Status().Trouble)
	})
}

// Trouble is reported as a message, once and then on change. Its end is reported when a list is accepted in full.
func TestTroubleIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
				}
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
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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

// One Discovery after another, as at a reload: what the source says in its
// bad hours is doubted as if there had been only one.
func TestTheLastSetIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
