package quality

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/pool"
)

func TestBacklogImbalance(t *testing.T) {
	for _, c := range []struct {
		stalled []float64 // negative: the upstream has not reported
		want    map[string]float64
	}{
		{nil, map[string]float64{}},
		{[]float64{-1}, map[string]float64{}},
		{[]float64{10, 10, -1}, map[string]float64{"a": 0, "b": 0}},
		{[]float64{30, 0, 0}, map[string]float64{"a": 2, "b": -1, "c": -1}},
		{[]float64{1, 0, 0}, map[string]float64{"a": 2.0 / 3, "b": -1.0 / 3, "c": -1.0 / 3}},
	} {
		var v View
		for i, stalled := range c.stalled {
			u := Upstream{State: pool.State{Upstream: pool.Upstream{Address: string(rune('a' + i))}, Stalled: stalled}}
			if stalled < 0 {
				u.ReportAge = -1
			}
			v.Upstreams = append(v.Upstreams, u)
		}
		got := map[string]float64{}
		v.BacklogImbalance(func(address string, x float64) { got[address] = x })
		assert.InDeltaMapValues(t, c.want, got, 1e-9)
		assert.Len(t, got, len(c.want))
	}
}
