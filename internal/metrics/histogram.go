package metrics

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The native buckets are those of Prometheus: there are perOctave from each power of two
// to the next, so that each is 9 % wider than the one before. Values from 60 ns to three
// days have one, in seconds; what is beyond counts in the first or the last.
const (
	schema      = 3
	perOctave   = 1 << schema
	firstNative = -24 * perOctave
	lastNative  = 18 * perOctave
	// maxNative is how many a scraper is shown. Where more have values, each two become one.
	maxNative = 160
)

// histogram counts values by classic buckets and by native ones, and shows a scraper what
// client_golang's would. That one looks native buckets up in a map, which costs a job
// more than everything else here.
type histogram struct {
	labels  []string // the values of its labels
	bounds  []float64
	created time.Time

	mu      sync.Mutex
	sum     float64
	classic []uint64 // by bounds; the last is beyond them
	zero    uint64   // values of 0
	native  [lastNative - firstNative + 1]uint64
}

// Observe counts a value, which is not negative.
func (h *histogram) Observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sum += v
	h.classic[i]++
	if v > 0 {
		h.native[nativeBucket(v)-firstNative]++
	} else {
		h.zero++
	}
}

// nativeBucket is the number of the native bucket of a positive value: that of 1 is 0.
func nativeBucket(v float64) int {
	return min(max(int(math.Ceil(math.Log2(v)*perOctave)), firstNative), lastNative)
}

// metric is the histogram as it is now.
func (h *histogram) metric(desc *prometheus.Desc) (prometheus.Metric, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shown := shownHistogram{buckets: make([]*dto.Bucket, len(h.bounds))}
	count := uint64(0)
	for i, n := range h.classic {
		count += n
		if i < len(h.bounds) {
			shown.buckets[i] = &dto.Bucket{CumulativeCount: new(count), UpperBound: new(h.bounds[i])}
		}
	}
	natives := map[int]int64{}
	for i, n := range h.native {
		if n > 0 {
			natives[firstNative+i] = int64(n)
		}
	}
	resolution := int32(schema)
	for len(natives) > maxNative {
		natives, resolution = paired(natives), resolution-1
	}
	var err error
	shown.Metric, err = prometheus.NewConstNativeHistogram(desc, count, h.sum, natives, nil, h.zero, resolution,
		prometheus.DefNativeHistogramZeroThreshold, h.created, h.labels...)
	return shown, err
}

// paired makes one native bucket of each two.
func paired(natives map[int]int64) map[int]int64 {
	half := map[int]int64{}
	for bucket, n := range natives {
		half[(bucket+1)>>1] += n
	}
	return half
}

// shownHistogram adds classic buckets to a metric with native ones.
type shownHistogram struct {
	prometheus.Metric
	buckets []*dto.Bucket
}

// Write implements prometheus.Metric.
func (s shownHistogram) Write(to *dto.Metric) error {
	err := s.Metric.Write(to)
	if err == nil {
		to.Histogram.Bucket = s.buckets
	}
	return err
}

// histograms are those of one name.
type histograms struct {
	desc   *prometheus.Desc
	bounds []float64

	mu  sync.Mutex
	all map[string]*histogram // by the values of their labels
}

func newHistograms(name, help string, bounds []float64, labels ...string) *histograms {
	return &histograms{desc: prometheus.NewDesc(name, help, labels, nil), bounds: bounds, all: map[string]*histogram{}}
}

// with returns the histogram of these values of the labels.
func (f *histograms) with(labels ...string) *histogram {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.Join(labels, "\x00")
	if f.all[key] == nil {
		f.all[key] = &histogram{labels: labels, bounds: f.bounds, created: time.Now(), classic: make([]uint64, len(f.bounds)+1)}
	}
	return f.all[key]
}

// remove forgets the histogram of these values of the labels.
func (f *histograms) remove(labels ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, strings.Join(labels, "\x00"))
}

// Describe implements prometheus.Collector.
func (f *histograms) Describe(to chan<- *prometheus.Desc) { to <- f.desc }

// Collect implements prometheus.Collector. A histogram that Prometheus cannot show, for a
// label that is not UTF-8, becomes an error of the scrape.
func (f *histograms) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	all := make([]*histogram, 0, len(f.all))
	for _, h := range f.all {
		all = append(all, h)
	}
	f.mu.Unlock()
	for _, h := range all {
		m, err := h.metric(f.desc)
		if err != nil {
			m = prometheus.NewInvalidMetric(f.desc, err)
		}
		to <- m
	}
}
