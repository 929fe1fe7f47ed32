package balancer_test

import (
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

// Other settings reach the pool, the breakers and the dispatcher.
func TestOtherSettingsAreInForceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, dispatch.DefaultQueue(), balancer.Hooks{})
		set := balancer.Settings{
			Pool:  pool.Settings{Policy: selection.Random{}, Interval: time.Minute, Breaker: pool.DefaultBreaker()},
			Retry: dispatch.DefaultRetry(), Queue: bounded(1),
		}
		set.Pool.Breaker.Failures, set.Retry.Attempts, set.Retry.FirstByte = 1, 1, time.Hour
		b.SetSettings(set)
		l, err := claim(t.Context(), b, dispatch.Request{})
		require.NoError(t, err)
		next := l.Failed(time.Now(), dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Begun, Repeatable: true})
		assert.False(t, next.Again, "one attempt is all")
		assert.Equal(t, time.Hour, b.Begin(dispatch.Request{}).FirstByte)
		assert.Equal(t, pool.BreakerOpen, b.States()[0].Breaker.State)

		set.Pool.Breaker.Failures, set.Retry.Attempts = 5, 3
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
