package report

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.org/pilotfish/pkg/selection"
)

// page is the metrics of one upstream as its metrics page shows them.
type page map[string]*dto.MetricFamily

// readPage reads Prometheus text of at most maxLines lines to its end.
func readPage(header http.Header, body io.Reader, maxLines int) (page, error) {
	if kind := header.Get("Content-Type"); kind != "" && expfmt.ResponseFormat(header) != expfmt.FmtText {
		return nil, fmt.Errorf("content type %q is not Prometheus text", kind)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&lineLimit{from: body, left: maxLines, max: maxLines})
	if err != nil {
		return nil, err
	}
	return families, nil
}

func (p page) levels(wanted metric) (sums [selection.Priorities]float64, err error) {
	name, found := wanted.name, len(wanted.labels) == 0
	family := p[name]
	if family == nil {
		return sums, fmt.Errorf("metric %s is missing", name)
	}
	for _, m := range family.GetMetric() {
		if !wanted.takes(m) {
			continue
		}
		found = true
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
		if err := checkCount(name, value); err != nil {
			return sums, err
		}
		sums[priorityOf(m)] += value
	}
	if !found {
		return sums, fmt.Errorf("metric %s is missing", wanted.id())
	}
	return sums, nil
}

func (p page) total(wanted metric) total {
	family := p[wanted.name]
	if family == nil {
		return unknown
	}
	var t total
	found := len(wanted.labels) == 0
	for _, m := range family.GetMetric() {
		if !wanted.takes(m) {
			continue
		}
		found = true
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
	if !found {
		return unknown
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

// lineLimit passes on what it reads until that has more than max line ends.
type lineLimit struct {
	from      io.Reader
	left, max int
}

func (l *lineLimit) Read(into []byte) (int, error) {
	n, err := l.from.Read(into)
	if l.left -= bytes.Count(into[:n], []byte{'\n'}); l.left < 0 {
		return 0, fmt.Errorf("longer than %d lines", l.max)
	}
	return n, err
}
