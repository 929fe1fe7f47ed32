package report

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

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
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&lineLimit{from: body, left: maxLines, max: maxLines})
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
	for _, m := range all.list() {
		suffix, ok := strings.CutPrefix(name, m.name)
		if ok && (suffix == "" || suffix == sumSuffix || suffix == countSuffix) && m.takes(s.Metric) {
			f.add(m.figure+suffix, string(s.Metric[priorityLabel]), float64(s.Value))
		}
	}
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
