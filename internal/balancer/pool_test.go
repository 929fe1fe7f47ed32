package balancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Other settings reach the pool, the breakers and the dispatcher.
func TestOtherSettingsAreInForceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		set := balancer.Settings{
			Pool:    pool.Settings{Policy: selection.Random{}, Interval: time.Minute},
			Breaker: breaker.Default(), Retry: dispatch.DefaultRetry(), Queue: bounded(1),
		}
		set.Breaker.Failures, set.Retry.Attempts, set.Retry.FirstByte = 1, 1, time.Hour
		b.SetSettings(set)
		l, err := claim(t.Context(), b, dispatch.Request{})
		require.NoError(t, err)
		next := l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Begun, Repeatable: true})
		assert.False(t, next.Again, "one attempt is all")
		assert.Equal(t, time.Hour, b.Begin(dispatch.Request{}).FirstByte)
		assert.Equal(t, breaker.Open, b.States()[0].Breaker.State)

		set.Breaker.Failures, set.Retry.Attempts = 5, 3
		b.SetSettings(set)
		time.Sleep(time.Minute)
		load(b, 0, 0)
		l, err = claim(t.Context(), b, dispatch.Request{})
		require.NoError(t, err)
		l.Answered(time.Now(), true, nil)
		l.Done(time.Now(), pool.Answered)
		load(b, 0, 1000)
		time.Sleep(2 * time.Minute)
		assert.True(t, b.States()[0].ReportFresh, "by the longer interval")
		go func() { _, _ = claim(t.Context(), b, dispatch.Request{Queue: time.Second}) }()
		synctest.Wait()
		_, err = claim(t.Context(), b, dispatch.Request{})
		assert.ErrorIs(t, err, dispatch.ErrFull)
	})
}

// Each claim is told of, at once or after a wait; a job that gets no upstream is not.
func TestPickedFollowsEachClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		picked := 0
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{Picked: func(selection.Cache, time.Duration, bool) { picked++ }})
		l, err := claim(t.Context(), b, dispatch.Request{})
		require.NoError(t, err)
		l.Done(time.Now(), pool.Answered)
		assert.Equal(t, 1, picked)
		load(b, 0, 1000)
		served := make(chan *balancer.Lease)
		go func() {
			l, err := claim(t.Context(), b, dispatch.Request{})
			assert.NoError(t, err)
			served <- l
		}()
		synctest.Wait()
		assert.Equal(t, 1, picked, "it waits")
		load(b, 0, 0)
		(<-served).Done(time.Now(), pool.Answered)
		assert.Equal(t, 2, picked)
		b.Set(nil)
		_, err = claim(t.Context(), b, dispatch.Request{Queue: time.Second})
		require.Error(t, err)
		assert.Equal(t, 2, picked)
	})
}
