package submitterserver

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestTheEndOfALifetimeCallsFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []string
		call := func(name string) func() {
			return func() { called = append(called, name) }
		}
		l := newLifetime(context.Background())
		for range 2 {
			assert.True(t, l.AfterFunc(call("stopped"))())
		}
		stop := l.AfterFunc(call("first"))
		l.cancel()
		synctest.Wait()
		assert.Equal(t, []string{"first"}, called)
		assert.False(t, stop(), "it was called")
		stop = l.AfterFunc(call("late"))
		synctest.Wait()
		assert.Equal(t, []string{"first", "late"}, called, "the end was before")
		assert.False(t, stop())

		base, cut := context.WithCancelCause(context.Background())
		l, called = newLifetime(base), nil
		l.AfterFunc(call("first"))
		second := l.AfterFunc(func() {})
		assert.True(t, second(), "the first is not touched")
		cut(assert.AnError)
		synctest.Wait()
		assert.Equal(t, []string{"first"}, called)
		assert.Equal(t, assert.AnError, context.Cause(l))

		l, called = newLifetime(context.Background()), nil
		l.AfterFunc(call("never"))
		l.close()
		synctest.Wait()
		assert.Empty(t, called, "no request is left")
		assert.Error(t, l.Err())
	})
}

// Each function is either called or stopped, however the end and the stop meet.
func TestAFunctionIsCalledOrStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 2000 {
			l := newLifetime(context.Background())
			var called, stopped atomic.Int32
			var wg sync.WaitGroup
			wg.Go(l.cancel)
			wg.Go(func() {
				for range 3 {
					stop := l.AfterFunc(func() { called.Add(1) })
					if stop() {
						stopped.Add(1)
					}
				}
			})
			wg.Wait()
			synctest.Wait()
			assert.EqualValues(t, 3, called.Load()+stopped.Load())
		}
	})
}
