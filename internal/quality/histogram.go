package quality

import "math"

// Quantiles describes the distribution of values.
type Quantiles struct {
	// P50, P90 and P99 are the 50th, 90th and 99th percentiles, with an error of at most 5 %; 0 without values.
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// A histogram has buckets of fixed bounds from a millisecond to 10^5 s. Each is a tenth
// wider than the one before.
const (
	perDecade = 24
	buckets   = 8*perDecade + 1
	leastTime = 1e-3
)

type histogram [buckets]uint32

func (h *histogram) add(value float64) {
	if !(value > leastTime) {
		h[0]++
		return
	}
	h[int(perDecade*min(math.Log10(value/leastTime), 8))]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

func (h *histogram) quantiles() Quantiles {
	all := 0.0
	for _, n := range h {
		all += float64(n)
	}
	at := func(share float64) float64 {
		below := 0.0
		for i, n := range h {
			if below += float64(n); n > 0 && below >= share*all {
				return leastTime * math.Pow(10, (float64(i)+0.5)/perDecade) // the middle of the bucket
			}
		}
		return 0
	}
	return Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}
