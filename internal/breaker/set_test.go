package breaker

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newSet(t *testing.T, changed func(string, State, State)) *Set {
	t.Helper()
	set, err := New(Config{Settings: Default(), Rand: testRNG(1), Changed: changed})
	require.NoError(t, err)
	return set
}

func TestUpstreamsFailAlone(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for failing := 0; failing <= n; failing++ {
			set := newSet(t, nil)
			for i := range failing {
				of(t, set, fmt.Sprintf("u:%d", i)).fail(5)
			}
			ready := 0
			for i := range n {
				if f := of(t, set, fmt.Sprintf("u:%d", i)); f.Ready(f.now) {
					ready++
				}
			}
			assert.Equal(t, n-failing, ready, "%d upstreams, %d failing", n, failing)
		}
	}
}

func TestChangesAreToldOnceAndInOrder(t *testing.T) {
	var f *fixture
	var told []string
	set := newSet(t, func(address string, from, to State) {
		told = append(told, fmt.Sprintf("%s %v %v", address, from, to))
		assert.Equal(t, to, f.state(), "told before it was so")
		f.Ready(f.now)
	})
	f = of(t, set, "u:1")
	f.fail(5)
	f.sleepOpen()
	f.try(Unhealthy)
	f.sleepOpen()
	f.try(Healthy)
	assert.Equal(t, []string{
		"u:1 closed open",
		"u:1 open half-open", "u:1 half-open open",
		"u:1 open half-open", "u:1 half-open closed",
	}, told)
}

func TestStatusSaysSinceWhenAndUntilWhen(t *testing.T) {
	f := newFixture(t, Default())
	assert.Equal(t, Status{}, f.Status())
	f.sleep(time.Second)
	f.fail(5)
	status := f.Status()
	assert.Equal(t, Open, status.State)
	assert.Equal(t, f.now, status.Since)
	assert.InEpsilon(t, 5, status.Until.Sub(f.now).Seconds(), 0.2)
	assert.Equal(t, 1, status.Trips)

	text, err := json.Marshal(status)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"state":"open"`)

	f.sleepOpen()
	f.try(Healthy)
	assert.Equal(t, Status{State: Closed, Since: f.now, Trips: 1}, f.Status())
}

func TestAFailingUpstreamThatRegistersAnewIsRemembered(t *testing.T) {
	set := newSet(t, nil)
	f := of(t, set, "u:1")
	f.fail(5)

	set.Leave(f.now, "u:1")
	f.sleep(time.Minute - 1)
	set.Leave(f.now, "another") // forgets what is old by now
	assert.Equal(t, Open, set.Join("u:1").Status().State)

	f.sleep(time.Hour)
	set.Leave(f.now, "another")
	assert.Equal(t, 1, set.Join("u:1").Status().Trips, "forgotten although it is back")

	set.Leave(f.now, "u:1")
	f.sleep(time.Minute)
	set.Leave(f.now, "another")
	assert.Empty(t, set.breakers)
	assert.Equal(t, Status{}, set.Join("u:1").Status())
}

func TestUpstreamsThatComeAndGoLeaveNothing(t *testing.T) {
	set := newSet(t, nil)
	now := of(t, set, "u:0").now
	for i := range 1000 {
		address := fmt.Sprintf("u:%d", i)
		f := of(t, set, address)
		f.now = now
		if i%2 == 0 {
			f.try(Healthy)
		} else {
			f.fail(5)
		}
		set.Leave(now, address)
		now = now.Add(time.Second)
	}
	assert.LessOrEqual(t, len(set.breakers), 31) // the failing half of the last minute
	assert.Len(t, set.left, len(set.breakers))
	set.Leave(now.Add(time.Minute), "another")
	assert.Empty(t, set.breakers)
	assert.Empty(t, set.left)
}

// Jobs of many submitters overlap at three upstreams in every way: each breaker
// goes from one state to the next, and what was told is what is.
func TestOverlappingJobs(t *testing.T) {
	last := map[string]State{}
	set, err := New(Config{
		Settings: Settings{Failures: 2, Open: time.Millisecond, OpenMax: 4 * time.Millisecond},
		Rand:     testRNG(1),
		Changed: func(address string, from, to State) {
			assert.Equal(t, last[address], from, "out of order")
			assert.NotEqual(t, from, to)
			last[address] = to
		},
	})
	require.NoError(t, err)
	rng := testRNG(2)
	now := of(t, set, "u:0").now
	var open []doneFunc
	for range 32_000 {
		b := set.Join(fmt.Sprintf("u:%d", rng.IntN(3)))
		ready := b.Ready(now)
		done, ok := b.Enter(now)
		assert.Equal(t, ready, ok)
		if ok {
			open = append(open, done)
		}
		if len(open) > rng.IntN(9) {
			i := rng.IntN(len(open))
			open[i](now, Verdict(rng.IntN(3)))
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		now = now.Add(time.Duration(rng.IntN(200)) * time.Microsecond)
	}
	require.Len(t, last, 3)
	for address, state := range last {
		assert.Equal(t, set.Join(address).Status().State, state)
	}
}
