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
		d, err := New(Config{Static: []string{"B:1", "a:1", "b:1", "127.0.0.1:8080", "localhost:8080"}, Own: []string{"127.0.0.1:8080"}}, seeded())
		require.NoError(t, err)
		assert.Equal(t, "a b", sets(follow(t, d, time.Hour)))
		assert.Equal(t, "static list", d.Status().Source)
		assert.EqualValues(t, 1, d.Status().Applied)
	})
}

func TestNewRefusesNonsense(t *testing.T) {
	static := []string{"a:1"}
	for want, c := range map[string]Config{
		"discovery: want exactly one of static, file, dns and consul, got 0":        {},
		"discovery: want exactly one of static, file, dns and consul, got 2":        {Static: static, File: &FileConfig{}},
		"discovery: the static list is empty":                                       {Static: []string{}},
		`discovery: static upstream 2: address "b": want host:port`:                 {Static: []string{"a:1", "b"}},
		"discovery: every upstream of the static list is the sidecar's own address": {Static: static, Own: static},
		`discovery: own address "a": want host:port`:                                {Static: static, Own: []string{"a"}},
		"discovery: at most -1 upstreams: want a positive number":                   {Static: static, MaxUpstreams: -1},
		"discovery: a list of 2 upstreams, at most 1 are allowed":                   {Static: []string{"a:1", "b:1"}, MaxUpstreams: 1},
		"discovery: lifetime of -1s: want a positive duration":                      {Static: static, Lifetime: -time.Second},
		"discovery: hold for an empty answer of -1s: want a positive duration":      {Static: static, Guard: GuardConfig{HoldEmpty: -time.Second}},
		"discovery: a static list needs no snapshot":                                {Static: static, Snapshot: "x"},
		"discovery: a static list takes over nothing":                               {Static: static, Last: []pool.Upstream{}},
	} {
		_, err := New(c, seeded())
		assert.EqualError(t, err, want)
	}
}

func TestRunReturnsAtOnceWhenCancelled(t *testing.T) {
	for name, a := range map[string]*agent{
		"while asking":  {replies: []reply{{hang: true}}},
		"while pausing": {replies: []reply{{refuse: true}}},
		"while sending": {replies: []reply{list("10", "a")}},
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
		a := &agent{replies: []reply{list("10", "me a me b"), list("11", "me a").late(time.Second), list("11", "me a").quiet()}}
		d := consulOf(t, a, func(c *Config) { c.Own = []string{"ME:1"} })
		assert.Equal(t, "a b | a", sets(follow(t, d, time.Minute)))
	})
}

func TestTooManyUpstreamsAreNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("10", "a b"), list("11", "a b c d")}}
		d := consulOf(t, a, func(c *Config) { c.MaxUpstreams = 3 })
		assert.Equal(t, "a b", sets(follow(t, d, time.Minute)))
		assert.EqualError(t, d.Status().Err, "consul service rules at consul.test:8500 names 4 upstreams, at most 3 are allowed")
	})
}

func TestStatusTellsOfTheAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []Status
		a := &agent{replies: []reply{
			list("10", "a b c"), list("11", "").late(5 * time.Second), {refuse: true},
			{index: "12", body: `[null,` + entries("a b c")[1:], after: time.Second}, list("12", "a b c").quiet(),
		}}
		d := consulOf(t, a, func(c *Config) { c.Observe = func(s Status) { told = append(told, s) } })
		start := time.Now()
		follow(t, d, 30*time.Second)
		require.Len(t, told, 4)

		assert.Equal(t, start, told[0].HeardAt)
		assert.Equal(t, start, told[0].AppliedAt)
		assert.Equal(t, Emptiness, told[1].Doubt)
		assert.Equal(t, start, told[1].HeardAt, "the set's age goes on while in doubt")
		assert.ErrorContains(t, told[2].Err, "connection refused")
		assert.Equal(t, None, told[2].Doubt)
		assert.NoError(t, told[3].Err)
		assert.EqualError(t, told[3].Flaw, "an instance that is null")
		assert.True(t, told[3].HeardAt.After(start))
		assert.Equal(t, start, told[3].AppliedAt, "nothing changed")
		assert.Equal(t, []uint64{1, 1, 1}, []uint64{told[3].Applied, told[3].Refused, told[3].Failed})
		assert.Equal(t, told[3], d.Status())
	})
}

func TestTheReceiverOwnsTheSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &agent{replies: []reply{list("10", "a b"), list("11", "a b c").late(time.Second), list("11", "a b c").quiet()}}
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
		a := &agent{replies: []reply{{refuse: true}, list("10", "a"), list("11", "a b c d").quiet()}}
		d := consulOf(t, a, func(c *Config) {
			c.Last = []pool.Upstream{{Address: "a:1"}, {Address: "b:1"}, {Address: "c:1"}, {Address: "d:1"}}
		})
		assert.Equal(t, 4, d.Status().Upstreams)
		assert.Equal(t, "a b c d", sets(follow(t, d, time.Minute)))
		assert.EqualValues(t, 1, d.Status().Refused)
	})
}
