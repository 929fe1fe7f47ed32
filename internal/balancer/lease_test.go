package balancer_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pilotfish/internal/admission"
	"pilotfish/internal/balancer"
	"pilotfish/internal/pool"
	"pilotfish/pkg/selection"
)

// A lease's holder reads where it goes while discovery changes what it knows of
// that upstream. Only the race detector can tell.
func TestALeaseIsReadWhileTheSetChanges(t *testing.T) {
	b := newBalancer(t, 1, admission.Config{}, balancer.Hooks{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				l, err := b.Claim(t.Context(), balancer.Request{})
				if assert.NoError(t, err) {
					assert.Equal(t, address(0), l.Upstream().Address)
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

// A job that has been everywhere is told so at once, however many wait before it.
func TestAllTriedDoesNotWaitBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 1, admission.Config{}, balancer.Hooks{})
		load(b, 0, 1000)
		for range 20 {
			go func() {
				_, err := b.Claim(t.Context(), balancer.Request{})
				assert.ErrorIs(t, err, admission.ErrWaited)
			}()
		}
		synctest.Wait()
		began := time.Now()
		r := balancer.Request{Request: pool.Request{Tried: []string{address(0)}, Priority: selection.Low}}
		_, err := b.Claim(t.Context(), r)
		require.ErrorIs(t, err, pool.ErrAllTried)
		assert.Zero(t, time.Since(began))
		time.Sleep(time.Minute) // the others give up
		synctest.Wait()
	})
}
