package report

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Bounds on the metrics page of one upstream. A line may cost far more memory than
// its bytes.
const (
	maxPageBytes = 4 << 20
	maxPageLines = 50_000
)

// readPage reads Prometheus text of at most maxLines lines to its end, and adds up what the
// metrics take of it.
func readPage(header http.Header, body io.Reader, maxLines int, all metrics) (figures, error) {
	if kind := header.Get("Content-Type"); kind != "" && expfmt.ResponseFormat(header) != expfmt.FmtText {
		return nil, fmt.Errorf("content type %q is not Prometheus text", kind)
	}
	left := maxLines
	text := &guarded{from: body, check: func(read []byte) error {
		if left -= bytes.Count(read, []byte{'\n'}); left < 0 {
			return fmt.Errorf("longer than %d lines", maxLines)
		}
		return nil
	}}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, err
	}
	f := figures{}
	for _, family := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, family)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			f.take(s, all)
		}
	}
	return f, nil
}

// take adds a sample to the figures that it is part of.
func (f figures) take(s *model.Sample, all metrics) {
	name := string(s.Metric[model.MetricNameLabel])
	for figure, m := range all {
		if m.name == name && m.takes(s.Metric) {
			f.add(figure, string(s.Metric["priority"]), float64(s.Value))
		}
	}
}
