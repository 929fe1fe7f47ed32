package report

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pilotfish/pkg/selection"
)

// maxCount bounds what is believed of a gauge or counter: far above all that
// a server can count, far below where a float64 loses units.
const maxCount = 1e12

// page is the metrics of one upstream at one instant, by name.
type page map[string]*dto.MetricFamily

// readPage reads Prometheus text of at most maxLines lines to its end.
func readPage(header http.Header, body io.Reader, maxLines int) (page, error) {
	if kind := header.Get("Content-Type"); kind != "" && expfmt.ResponseFormat(header) != expfmt.FmtText {
		return nil, fmt.Errorf("content type %q is not Prometheus text", kind)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&lines{from: body, left: maxLines, max: maxLines})
	if err != nil {
		return nil, err
	}
	return families, nil
}

// levels returns the sums of a metric by priority. What does not say its
// priority is low. A metric that is missing, or that counts what cannot be
// counted, is an error.
func (p page) levels(name string) (sums [selection.Priorities]float64, err error) {
	family := p[name]
	if family == nil {
		return sums, fmt.Errorf("metric %s is missing", name)
	}
	for _, m := range family.GetMetric() {
		var value float64
		switch {
		case m.Gauge != nil:
			value = m.GetGauge().GetValue()
		case m.Counter != nil:
			value = m.GetCounter().GetValue()
		case m.Untyped != nil:
			value = m.GetUntyped().GetValue()
		default:
			return sums, fmt.Errorf("metric %s is a %s, not a number", name, strings.ToLower(family.GetType().String()))
		}
		if !(value >= 0 && value <= maxCount) {
			return sums, fmt.Errorf("metric %s is %v, not between 0 and %g", name, value, float64(maxCount))
		}
		sums[priorityOf(m)] += value
	}
	return sums, nil
}

// sum returns the sum of a metric over all its labels; NaN is unknown.
func (p page) sum(name string) float64 {
	levels, err := p.levels(name)
	if err != nil {
		return math.NaN()
	}
	return levels[selection.Low] + levels[selection.High]
}

// total returns a histogram's or summary's totals over all its labels.
func (p page) total(name string) total {
	family := p[name]
	if family == nil {
		return unknown
	}
	var t total
	for _, m := range family.GetMetric() {
		switch {
		case m.Histogram != nil && m.Histogram.SampleCountFloat != nil:
			t.add(m.Histogram.GetSampleSum(), m.Histogram.GetSampleCountFloat())
		case m.Histogram != nil:
			t.add(m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount()))
		case m.Summary != nil:
			t.add(m.Summary.GetSampleSum(), float64(m.Summary.GetSampleCount()))
		default:
			return unknown
		}
	}
	return t
}

func priorityOf(m *dto.Metric) selection.Priority {
	for _, label := range m.GetLabel() {
		if label.GetName() == "priority" {
			p, _ := selection.ParsePriority(label.GetValue())
			return p
		}
	}
	return selection.Low
}
