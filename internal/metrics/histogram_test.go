package metrics

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
)

// told is what a scraper is told by a metric, as text, without when it was made.
func told(t *testing.T, m prometheus.Metric) string {
	t.Helper()
	var to dto.Metric
	require.NoError(t, m.Write(&to))
	require.NotNil(t, to.Histogram.CreatedTimestamp)
	to.Histogram.CreatedTimestamp = nil
	return prototext.MarshalOptions{Multiline: true}.Format(&to)
}

// A histogram tells what client_golang's would.
func TestAHistogramIsLikeThatOfPrometheus(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, value := range map[string]func() float64{
		"none":           nil,
		"zero":           func() float64 { return 0 },
		"times":          func() float64 { return math.Exp(random.NormFloat64()*2 - 4) },
		"shares":         random.Float64,
		"bounds":         func() float64 { return jobSeconds[random.IntN(len(jobSeconds))] },
		"powers":         func() float64 { return math.Ldexp(1, random.IntN(40)-23) },
		"more than 160":  func() float64 { return math.Exp(random.Float64()*27 - 16) },
		"whole seconds":  func() float64 { return float64(random.IntN(8000)) },
		"far apart":      func() float64 { return []float64{1e-7, 1e5}[random.IntN(2)] },
		"nanoseconds up": func() float64 { return time.Duration(100 + random.IntN(1000)).Seconds() },
	} {
		opts := prometheus.HistogramOpts{
			Name: "name", Buckets: jobSeconds, ConstLabels: prometheus.Labels{"l": "a"},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: maxNative, NativeHistogramMinResetDuration: time.Hour,
		}
		theirs := prometheus.NewHistogram(opts)
		family := newHistograms("name", "", jobSeconds, "l")
		ours := family.with("a")
		for i := range 3000 {
			if value == nil || i%1000 == 0 {
				m, err := ours.metric(family.desc)
				require.NoError(t, err)
				require.Equal(t, told(t, theirs), told(t, m), name)
			}
			if value != nil {
				v := value()
				theirs.Observe(v)
				ours.Observe(v)
			}
		}
		m, err := ours.metric(family.desc)
		require.NoError(t, err)
		assert.Equal(t, told(t, theirs), told(t, m), name)
	}
}

// Values that have no native bucket count in the nearest.
func TestNativeBuckets(t *testing.T) {
	for v, want := range map[float64]int{
		1: 0, 1.0001: 1, 2: perOctave, 0.5: -perOctave,
		1e-300: firstNative, 1e300: lastNative, math.MaxFloat64: lastNative, math.SmallestNonzeroFloat64: firstNative,
	} {
		assert.Equal(t, want, nativeBucket(v), v)
	}
}

// A scrape while jobs end loses none of them.
func TestAHistogramIsObservedWhileItIsRead(t *testing.T) {
	f := newHistograms("name", "", jobSeconds, "l")
	const observers, each = 4, 1000
	var wg sync.WaitGroup
	for range observers {
		wg.Go(func() {
			for i := range each {
				f.with("a").Observe(float64(i))
			}
		})
	}
	read := func() *dto.Histogram {
		var to dto.Metric
		m, err := f.with("a").metric(f.desc)
		require.NoError(t, err)
		require.NoError(t, m.Write(&to))
		return to.Histogram
	}
	for range 100 {
		read()
	}
	wg.Wait()
	h := read()
	assert.EqualValues(t, observers*each, h.GetSampleCount())
	assert.Equal(t, float64(observers*each*(each-1)/2), h.GetSampleSum())
}

func TestHistogramsOfOneName(t *testing.T) {
	before := time.Now()
	f := newHistograms("name", "", jobSeconds, "l")
	f.with("a").Observe(1)
	f.with("b").Observe(2)
	f.with("a").Observe(3)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(f))
	sums := func() map[string]float64 {
		found, err := registry.Gather()
		require.NoError(t, err)
		sums := map[string]float64{}
		for _, family := range found {
			for _, m := range family.Metric {
				assert.WithinRange(t, m.Histogram.CreatedTimestamp.AsTime(), before, time.Now())
				sums[m.Label[0].GetValue()] = m.Histogram.GetSampleSum()
			}
		}
		return sums
	}
	assert.Equal(t, map[string]float64{"a": 4, "b": 2}, sums())
	f.remove("a")
	assert.Equal(t, map[string]float64{"b": 2}, sums())
	f.with("\xff")
	_, err := registry.Gather()
	assert.ErrorContains(t, err, "UTF-8")
}
