package balancer_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

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
