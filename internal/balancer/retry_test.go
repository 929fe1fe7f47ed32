package balancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

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

// Retries that wait for the one upstream they have not been to hold up nobody
// who can go elsewhere.
func TestRetriesThatWaitHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, 2, admission.Config{}, balancer.Hooks{})
		load(b, 0, 1000)
		for range 20 {
			go func() {
				r := balancer.Request{Request: pool.Request{Tried: []string{address(1)}, Priority: selection.High}}
				_, err := b.Claim(t.Context(), r)
				assert.ErrorIs(t, err, admission.ErrWaited)
			}()
		}
		synctest.Wait()
		_, waiting := b.Counts()
		require.Equal(t, 20, waiting)
		began := time.Now()
		l, err := b.Claim(t.Context(), balancer.Request{})
		require.NoError(t, err)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, address(1), l.Upstream().Address)
		l.Done(pool.Answered)
		time.Sleep(time.Minute) // the others give up
		synctest.Wait()
	})
}
