package report

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// Limits for the metrics page of one upstream, in bytes. maxLineBytes applies to lines of metrics that are read; other lines can be longer.
const (
	maxPageBytes = 4 << 20
	maxLineBytes = 8 << 10
)

const (
	openMetrics = "application/openmetrics-text"
	// acceptMetrics is the Accept header of Prometheus 3, because servers are tested with it.
	acceptMetrics = openMetrics + ";version=1.0.0;escaping=allow-utf-8;q=0.7," + openMetrics + ";version=0.0.1;q=0.6," +
		"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3"
)

// readPage reads the metrics page of an upstream to its end, and sums up its samples. Only lines of the metrics in all
// are parsed, so that an invalid line elsewhere on the page does no harm.
func readPage(header http.Header, body io.Reader, all metrics) (figures, error) {
	p := page{all: all, figures: figures{}, seen: map[uint64]bool{}}
	lines := bufio.NewReaderSize(body, maxLineBytes)
	ended := false
	for {
		line, err := lines.ReadSlice('\n')
		ended = ended && len(line) == 0 || string(bytes.TrimSpace(line)) == "# EOF"
		p.read(bytes.TrimSpace(line), errors.Is(err, bufio.ErrBufferFull))
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case kind == openMetrics && !ended:
		return nil, errors.New("truncated: it does not end with # EOF")
	case len(p.figures) == 0 && kind != openMetrics && kind != "text/plain" && kind != "":
		return nil, fmt.Errorf("the page has none of the configured metrics; its content type is %q", kind)
	}
	return p.figures, nil
}

// page sums up the samples of one metrics page.
type page struct {
	all     metrics
	figures figures
	seen    map[uint64]bool // hashes of series. A merged page can contain a series twice; the first counts
}

// read adds a line. A line that cannot be parsed makes the figures of its metric unknown.
func (p *page) read(line []byte, tooLong bool) {
	name := line
	if end := bytes.IndexAny(line, "{ \t"); end >= 0 {
		name = line[:end] // "" if the name is quoted inside the braces
	}
	if len(line) == 0 || line[0] == '#' || len(name) > 0 && !p.all.has(name) {
		return
	}
	series, value, err := parseSample(append(slices.Clip(line), '\n'))
	if tooLong {
		err = fmt.Errorf("a line is longer than %d bytes", maxLineBytes)
	}
	if err != nil {
		p.figures.fail(p.all, string(name), err)
		return
	}
	if hash := series.Hash(); !p.seen[hash] {
		p.seen[hash] = true
		for figure, m := range p.all {
			if m.matches(series) {
				p.figures.add(figure, series.Get("priority"), value)
			}
		}
	}
}

// parseSample parses a line in the text format or, for exemplars, which that lacks, as OpenMetrics.
func parseSample(line []byte) (series labels.Labels, value float64, err error) {
	symbols := labels.NewSymbolTable()
	for _, parser := range []textparse.Parser{textparse.NewPromParser(line, symbols, false), textparse.NewOpenMetricsParser(line, symbols)} {
		entry, failed := parser.Next()
		if failed == nil && entry == textparse.EntrySeries {
			_, _, value = parser.Series()
			parser.Labels(&series)
			return series, value, nil
		}
		err = cmp.Or(err, failed, errors.New("no sample"))
	}
	return series, 0, err
}
