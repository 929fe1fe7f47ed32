package balancer_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

type half struct{}

func (half) Observe(overload.Sample) overload.Level { return 0.75 } // admits half of the low jobs, by project

// 100 low jobs a second, half of which the upstream admits: all of that half should be answered.
func TestRefusedProjectsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy, err := selection.New("least-in-flight")
		require.NoError(t, err)
		p, err := pool.New(pool.Config{Policy: policy, Detector: func() overload.Detector { return half{} },
			Rand: rand.New(rand.NewPCG(1, 1)), Breakers: breakers(t), Interval: time.Hour})
		require.NoError(t, err)
		q, err := admission.New(admission.Config{})
		require.NoError(t, err)
		b, err := balancer.New(balancer.Config{Pool: p, Queue: q})
		require.NoError(t, err)
		b.Set([]pool.Upstream{{Address: "a:1"}})
		b.Report("a:1", pool.Report{At: time.Now(), CoresBusy: -1, Completed: -1, Wait: math.NaN(), Response: math.NaN()})
		answered := 0
		for i := range 2000 {
			go func() {
				l, err := b.Claim(t.Context(), balancer.Request{Request: pool.Request{Project: uint64(i+1) * 0x9e3779b97f4a7c15}})
				if err != nil {
					return
				}
				answered++
				l.Done(pool.Answered)
			}()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Greater(t, answered, 900)
	})
}
