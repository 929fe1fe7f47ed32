package report

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// metric says which samples of an upstream make up a figure: all of a name or, with
// labels, those that have them. The text is as in PromQL:
//
//	vllm:num_requests_running{model_name="llama"} * 0.5
type metric struct {
	name   string // "" is none
	labels model.LabelSet
	scale  float64 // of the values; of a histogram, of its sum
}

// maxMetricBytes bounds a metric in the settings.
const maxMetricBytes = 1024

var (
	errNoMetric = errors.New(`is not a metric such as jobs{kind="a"}`)
	errScale    = errors.New("has a scale that is no positive number: write jobs * 0.001")
)

// parseMetric reads the text of a metric.
func parseMetric(text string) (m metric, err error) {
	m.scale = 1
	if text == none {
		return m, nil
	}
	rest := text
	if at := strings.LastIndex(text, " * "); at > strings.LastIndexByte(text, '}') {
		m.scale, err = strconv.ParseFloat(strings.TrimSpace(text[at+3:]), 64)
		if err != nil || !(m.scale > 0) || math.IsInf(m.scale, 0) {
			return m, errScale
		}
		rest = text[:at]
	}
	if len(text) > maxMetricBytes || strings.Contains(text, "\n") {
		return m, errNoMetric
	}
	// A metric is a line of a metrics page without its value.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(rest + " 1\n"))
	if err != nil || len(families) != 1 {
		return m, errNoMetric
	}
	for name, family := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: unstamped}, family)
		if err != nil || len(samples) != 1 || samples[0].Value != 1 || samples[0].Timestamp != unstamped {
			return m, errNoMetric // the text had a value already
		}
		m.name, m.labels = name, model.LabelSet(samples[0].Metric)
		delete(m.labels, model.MetricNameLabel)
	}
	for name := range m.labels {
		if !model.LegacyValidation.IsValidLabelName(string(name)) {
			return m, errNoMetric // Prometheus 2 could not be asked for it
		}
	}
	return m, nil
}

// unstamped is the time of a sample that has none.
const unstamped = model.Time(-1)

// escaper writes a label's value as a metrics page has it, and PromQL: neither page nor settings know other escapes.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// matchers are the labels as PromQL has them, behind others.
func (m metric) matchers(others ...string) string {
	for _, name := range slices.Sorted(maps.Keys(m.labels)) {
		others = append(others, string(name)+`="`+escaper.Replace(string(m.labels[name]))+`"`)
	}
	return "{" + strings.Join(others, ",") + "}"
}

// String is the metric as the settings have it, without its scale.
func (m metric) String() string {
	if len(m.labels) == 0 && m.name != none {
		return m.name
	}
	return m.name + m.matchers()
}

// takes reports whether a series has the name and the labels. A missing label is empty, as in PromQL.
func (m metric) takes(series labels.Labels) bool {
	for name, value := range m.labels {
		if series.Get(string(name)) != string(value) {
			return false
		}
	}
	return series.Get(model.MetricNameLabel) == m.name
}

// metrics are the parsed Names by their keys in the settings. wait is two, the sum and the count of a histogram or summary, and
// prefix_cache is two counters.
type metrics map[string]metric

// have reports whether one of the metrics has this name.
func (all metrics) have(name []byte) bool {
	for _, m := range all {
		if m.name == string(name) {
			return true
		}
	}
	return false
}
