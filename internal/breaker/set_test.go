package breaker

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func TestUpstreamsFailAlone(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for failing := 0; failing <= n; failing++ {
			synctest.Test(t, func(t *testing.T) {
				set, err := New(Config{}, testRNG(1), nil)
				require.NoError(t, err)
				for i := range failing {
					fail(t, set.Gate(fmt.Sprintf("u:%d", i)), 5)
				}
				ready := 0
				for i := range n {
					if set.Gate(fmt.Sprintf("u:%d", i)).Ready(time.Now()) {
						ready++
					}
				}
				assert.Equal(t, n-failing, ready, "%d upstreams, %d failing", n, failing)
			})
		}
	}
}

func TestTransitionsAreToldOnceInOrderAndWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set *Set
		var told []string
		set, err := New(Config{}, testRNG(1), func(address string, from, to State) {
			told = append(told, fmt.Sprintf("%s %v %v", address, from, to))
			status, ok := set.Status(address) // waits for good if a lock is held
			assert.True(t, ok)
			assert.Equal(t, to, status.State)
			set.Gate(address).Ready(time.Now())
		})
		require.NoError(t, err)
		g := set.Gate("u:1").(*gate)
		fail(t, g, 5)
		sleepOpen(t, g)
		try(t, g, pool.Unhealthy)
		sleepOpen(t, g)
		try(t, g, pool.Healthy)
		assert.Equal(t, []string{
			"u:1 closed open",
			"u:1 open half-open", "u:1 half-open open",
			"u:1 open half-open", "u:1 half-open closed",
		}, told)
	})
}

func TestASlowListenerIsToldInOrderAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan State, 3)
		set, err := New(Config{}, testRNG(1), func(_ string, _, to State) {
			if to == Open {
				time.Sleep(time.Hour)
			}
			told <- to
		})
		require.NoError(t, err)
		g := set.Gate("u:1").(*gate)
		fail(t, g, 4)
		last := mustEnter(t, g)
		go last(time.Now(), pool.Unhealthy)
		synctest.Wait()
		sleepOpen(t, g)
		try(t, g, pool.Healthy)
		assert.Empty(t, told)
		assert.Equal(t, []State{Open, HalfOpen, Closed}, []State{<-told, <-told, <-told})
	})
}

func TestStatusSaysSinceWhenAndUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := New(Config{}, testRNG(1), nil)
		require.NoError(t, err)
		_, ok := set.Status("u:1")
		assert.False(t, ok)

		g := set.Gate("u:1").(*gate)
		time.Sleep(time.Second)
		fail(t, g, 5)
		now := time.Now()
		status, ok := set.Status("u:1")
		require.True(t, ok)
		assert.Equal(t, Open, status.State)
		assert.Equal(t, now, status.Since)
		assert.InEpsilon(t, 5, status.Until.Sub(now).Seconds(), 0.2)
		assert.Equal(t, 1, status.Trips)

		text, err := json.Marshal(status)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"state":"open"`)

		sleepOpen(t, g)
		try(t, g, pool.Healthy)
		status, _ = set.Status("u:1")
		assert.Equal(t, Status{State: Closed, Since: time.Now(), Trips: 1}, status)
	})
}

func TestAFailingUpstreamThatRegistersAnewIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := New(Config{}, testRNG(1), nil)
		require.NoError(t, err)
		fail(t, set.Gate("u:1"), 5)

		set.Forget(time.Now(), "u:1")
		time.Sleep(time.Minute - 1)
		set.Forget(time.Now(), "another") // forgets what is old by now
		assert.Equal(t, Open, set.Gate("u:1").(*gate).status().State)

		time.Sleep(time.Hour)
		set.Forget(time.Now(), "another")
		assert.Equal(t, 1, set.Gate("u:1").(*gate).status().Trips, "forgotten although it is back")

		set.Forget(time.Now(), "u:1")
		time.Sleep(time.Minute)
		set.Forget(time.Now(), "another")
		_, ok := set.Status("u:1")
		assert.False(t, ok)
		assert.Equal(t, Status{}, set.Gate("u:1").(*gate).status())
	})
}

func TestUpstreamsThatComeAndGoLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := New(Config{}, testRNG(1), nil)
		require.NoError(t, err)
		for i := range 1000 {
			address := fmt.Sprintf("u:%d", i)
			g := set.Gate(address)
			if i%2 == 0 {
				try(t, g, pool.Healthy)
			} else {
				fail(t, g, 5)
			}
			set.Forget(time.Now(), address)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, len(set.gates), 31) // the failing half of the last minute
		assert.Len(t, set.left, len(set.gates))
		time.Sleep(time.Minute)
		set.Forget(time.Now(), "another")
		assert.Empty(t, set.gates)
		assert.Empty(t, set.left)
	})
}

// Meant for the race detector: everything at once, over all transitions.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last := map[string]State{}
		set, err := New(Config{Failures: 2, Open: time.Millisecond, OpenMax: 4 * time.Millisecond},
			testRNG(1), func(address string, from, to State) {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, last[address], from, "out of order")
				last[address] = to
			})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for worker := range uint64(8) {
			wg.Go(func() {
				rng := testRNG(worker)
				for range 2000 {
					address := fmt.Sprintf("u:%d", rng.IntN(3))
					g := set.Gate(address)
					if g.Ready(time.Now()) {
						if done, ok := g.Enter(time.Now()); ok {
							time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
							done(time.Now(), pool.Verdict(rng.IntN(3)))
						}
					}
					set.Status(address)
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
				}
			})
		}
		wg.Wait()
		require.Len(t, last, 3)
		for address, state := range last {
			status, _ := set.Status(address)
			assert.Equal(t, status.State, state)
		}
	})
}
