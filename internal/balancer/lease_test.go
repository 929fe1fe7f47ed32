package balancer_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// What a lease is told reaches the pool and the dispatcher, and what the pool tells the
// hooks.
func TestALeaseTellsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered, members []string
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{
			Answered: func(_ time.Time, j *dispatch.Job, c pool.Choice) { answered = append(answered, c.Address) },
			Joined:   func(addresses []string) { members = append(members, fmt.Sprint("joined ", addresses)) },
			Gone:     func(addresses []string) { members = append(members, fmt.Sprint("gone ", addresses)) },
		})
		b.Set([]pool.Upstream{{Address: address(0)}})
		assert.Equal(t, []string{"joined [10.0.0.0:9000]"}, members, "nobody joins or leaves a set that stays")
		state := func(i int) pool.State { return b.States()[i] }
		load(b, 0, 0)
		l, err := claim(t.Context(), b, dispatch.Request{Project: 7})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		l.Answered(true, &pool.Hint{At: time.Now(), Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})
		assert.Equal(t, []string{address(0)}, answered)
		assert.Equal(t, 2.0, state(0).Latency)
		assert.Equal(t, 3.0, state(0).Running)
		time.Sleep(time.Second)
		l.Told(&pool.Hint{At: time.Now(), Running: [2]float64{4, 0}, Waited: -1, Fetched: -1})
		assert.Equal(t, 4.0, state(0).Running)

		b.Set([]pool.Upstream{{Address: address(0)}, {Address: address(1)}})
		b.Listing(address(1), time.Now(), listing{7})
		cached, assumed := b.CachedAt(7)
		assert.Equal(t, [][]string{{address(1)}, {address(0)}}, [][]string{cached, assumed})
		l.Move(address(1))
		assert.Equal(t, []any{address(1), selection.Cached, 0, 1}, []any{l.Address, l.Cache, state(0).InFlight, state(1).InFlight})
		l.Move("10.0.0.9:9000")
		inFlight, _ := b.Counts()
		assert.Equal(t, []any{"10.0.0.9:9000", selection.NotCached, 0}, []any{l.Address, l.Cache, inFlight}, "nobody knows it")
		l.Done(pool.Answered)
		b.Set(nil)
		assert.Equal(t, "gone [10.0.0.0:9000 10.0.0.1:9000]", members[len(members)-1])
		assert.False(t, b.Ready())
	})
}

// listing is a cache of one project.
type listing struct{ project uint64 }

func (l listing) Contains(project uint64) bool { return project == l.project }
func (listing) Bytes(uint64) float64           { return 0 }
func (listing) Len() int                       { return 1 }

// A lease's holder reads where it goes while discovery changes what it knows of
// that upstream. Only the race detector can tell.
func TestALeaseIsReadWhileTheSetChanges(t *testing.T) {
	b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				l, err := claim(t.Context(), b, dispatch.Request{})
				if assert.NoError(t, err) {
					assert.Equal(t, address(0), l.Address)
					l.Done(pool.Answered)
				}
			}
		})
	}
	for i := range 2000 {
		b.Set([]pool.Upstream{{Address: address(0), Weight: float64(i + 1)}})
	}
	wg.Wait()
}
