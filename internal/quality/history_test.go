package quality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHistoryKeepsAnHour(t *testing.T) {
	var h History
	now := start
	for i := range 2 * 60 * 60 {
		now = start.Add(time.Duration(i) * time.Second)
		if !h.Due(now) {
			continue
		}
		jobs := map[string]float64{"a:1": float64(i)}
		if i >= 7000 {
			jobs["b:1"] = 5
		}
		h.Add(Point{At: now, Jobs: float64(i), Waiting: i, FirstByteP99: 1}, jobs)
	}
	s := h.Series()
	assert.Len(t, s.At, fleetPoints)
	assert.Equal(t, 10.0, s.StepSeconds)
	assert.Equal(t, []float64{3600, 7190}, []float64{s.Jobs[0], s.Jobs[359]})
	assert.Equal(t, []int{3600, 7190}, []int{s.Waiting[0], s.Waiting[359]})
	assert.Equal(t, start.Unix()+7190, s.At[359])
	assert.Len(t, s.Upstreams["a:1"], upstreamSize)
	assert.Equal(t, 7140.0, s.Upstreams["a:1"][59])
	assert.Equal(t, []float64{5, 5, 5}, s.Upstreams["b:1"], "it came later")
	h.Add(Point{At: now.Add(time.Minute)}, map[string]float64{"b:1": 1})
	assert.Len(t, h.Series().Upstreams, 1, "a left")
	assert.Len(t, s.Upstreams, 2, "what was returned stays as it was")
}

// The time to first byte without load is that of the calmest tenth, once the first
// minute is over.
func TestUnloaded(t *testing.T) {
	var h History
	assert.Zero(t, h.Unloaded())
	at := time.Unix(0, 0)
	add := func(p50 float64) {
		at = at.Add(fleetStep)
		h.Add(Point{At: at, FirstByteP50: p50}, nil)
	}
	add(0.001)
	assert.Equal(t, 0.001, h.Unloaded())
	for range 5 {
		add(0.5)
	}
	for range 18 {
		add(2)
	}
	add(0) // without a job
	add(1)
	add(1.5)
	assert.Equal(t, 1.5, h.Unloaded(), "the second least of twenty")
}
