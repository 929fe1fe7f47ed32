package discovery

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestStaticSendsItsListOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d, err := New(Config{
			Settings: Settings{Static: []string{"B:1", "a:1", "b:1", "127.0.0.1:8080", "localhost:8080"}},
			Rand:     seeded(), Self: []string{"127.0.0.1:8080"},
			Last: ups("x"), // ignored: the list is never in doubt
		})
		require.NoError(t, err)
		assert.Equal(t, "a b", sets(follow(t, d, time.Hour)))
		assert.Equal(t, "static list", d.Status().Source)
		assert.EqualValues(t, 1, d.Status().Applied)
	})
}

func TestNewRefusesNonsense(t *testing.T) {
	static := Settings{Static: []string{"a:1"}}
	for want, c := range map[string]Config{
		"discovery: Rand is required": {Settings: static},
		"discovery: every upstream of the static list is the sidecar's own address":                                          {Settings: static, Rand: seeded(), Self: static.Static},
		`discovery: own address "a" is not host:port`:                                                                        {Settings: static, Rand: seeded(), Self: []string{"a"}},
		"discovery: exactly one of static, file, dns, consul and kubernetes must say where the upstreams are, not 0 of them": {Rand: seeded()},
	} {
		_, err := New(c)
		assert.EqualError(t, err, want)
	}
}

func TestRunReturnsAtOnceWhenCancelled(t *testing.T) {
	for name, a := range map[string]*agent{
		"while asking":  {replies: []scripted{{hang: true}}},
		"while pausing": {replies: []scripted{{refuse: true}}},
		"while sending": {replies: []scripted{list("10", "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := consulOf(t, a, nil)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(500*time.Millisecond, cancel)
				start := time.Now()
				assert.ErrorIs(t, d.Run(ctx, make(chan []pool.Upstream)), context.Canceled)
				assert.Equal(t, 500*time.Millisecond, time.Since(start))
			})
		})
	}
}

func TestOwnAddressIsLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "me a me b"), list("11", "me a").late(time.Second), list("11", "me a").quiet()}}
		d := consulOf(t, a, func(c *Config) { c.Self = []string{"ME:1"} })
		assert.Equal(t, "a b | a", sets(follow(t, d, time.Minute)))
	})
}

func TestTooManyUpstreamsAreNoReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", many(maxUpstreams+1)).late(time.Second), {hang: true}}}
		d := consulOf(t, a, nil)
		assert.Equal(t, "a b", sets(follow(t, d, 2*time.Second)))
		assert.EqualError(t, d.Status().Err, "consul service rules at consul.test:8500 names 10001 upstreams, at most 10000 are allowed")
	})
}

func TestStatusTellsOfTheReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []Status
		a := &agent{replies: []scripted{
			list("10", "a b c"), list("11", "").late(5 * time.Second), {refuse: true},
			{index: "12", body: `[null,` + entries("a b c")[1:], after: time.Second}, list("12", "a b c").quiet(),
		}}
		d := consulOf(t, a, func(c *Config) { c.Observe = func(s Status) { seen = append(seen, s) } })
		start := time.Now()
		follow(t, d, 30*time.Second)
		require.Len(t, seen, 4)

		assert.Equal(t, start, seen[0].BelievedAt)
		assert.Equal(t, "emptiness", seen[1].Doubt)
		assert.Equal(t, start, seen[1].BelievedAt, "the set's age goes on while in doubt")
		assert.ErrorContains(t, seen[2].Err, "connection refused")
		assert.Empty(t, seen[2].Doubt)
		assert.NoError(t, seen[3].Err)
		assert.EqualError(t, seen[3].Flaw, "an instance is null")
		assert.True(t, seen[3].BelievedAt.After(start))
		assert.Equal(t, []uint64{1, 1, 1}, []uint64{seen[3].Applied, seen[3].Refused, seen[3].Failed})
		assert.Equal(t, seen[3], d.Status())
	})
}

func TestTheReceiverOwnsTheSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{list("10", "a b"), list("11", "a b c").late(time.Second), list("11", "a b c").quiet()}}
		d := consulOf(t, a, nil)
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := make(chan []pool.Upstream), make(chan error)
		go func() { ended <- d.Run(ctx, out) }()
		set := <-out
		clear(set)
		assert.Equal(t, "a b c", names(<-out))
		cancel()
		<-ended
	})
}

// One Discovery after another, as at a reload: what the source says in its
// bad hours is doubted as if there had been only one.
func TestTheLastSetIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []scripted{{refuse: true}, list("10", "a"), list("11", "a b c d").quiet()}}
		d := consulOf(t, a, func(c *Config) {
			c.Last = []pool.Upstream{{Address: "a:1"}, {Address: "b:1"}, {Address: "c:1"}, {Address: "d:1"}}
		})
		assert.Equal(t, 4, d.Status().Upstreams)
		assert.Equal(t, "a b c d", sets(follow(t, d, time.Minute)))
		assert.EqualValues(t, 1, d.Status().Refused)
	})
}
