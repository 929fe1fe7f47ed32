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

// metric selects the samples that are summed up to a figure: those with the name and
// all the labels. Its text form is as in PromQL:
//
//	vllm:num_requests_running{model_name="llama"} * 0.5
type metric struct {
	name   string // "" if the setting is none
	labels model.LabelSet
	scale  float64 // factor for the values; of a histogram, for its sum only
}

// maxMetricBytes is the maximum length of a metric in the settings.
const maxMetricBytes = 1024

var (
	errNoMetric = errors.New(`is not a metric such as jobs{kind="a"}`)
	errScale    = errors.New("has a scale that is no positive number: write jobs * 0.001")
)

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
	// A metric has the form of a line of a metrics page without its value.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(rest + " 1\n"))
	if err != nil || len(families) != 1 {
		return m, errNoMetric
	}
	for name, family := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: unstamped}, family)
		if err != nil || len(samples) != 1 || samples[0].Value != 1 || samples[0].Timestamp != unstamped {
			return m, errNoMetric // the text contains a value
		}
		m.name, m.labels = name, model.LabelSet(samples[0].Metric)
		delete(m.labels, model.MetricNameLabel)
	}
	for name := range m.labels {
		if !model.LegacyValidation.IsValidLabelName(string(name)) {
			return m, errNoMetric // Prometheus 2 cannot query it
		}
	}
	return m, nil
}

// unstamped is the timestamp of a sample without one.
const unstamped = model.Time(-1)

// escaper escapes the value of a label as metrics pages and PromQL do.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// matchers returns the labels as PromQL matchers, after others.
func (m metric) matchers(others ...string) string {
	for _, name := range slices.Sorted(maps.Keys(m.labels)) {
		others = append(others, string(name)+`="`+escaper.Replace(string(m.labels[name]))+`"`)
	}
	return "{" + strings.Join(others, ",") + "}"
}

// String returns the metric as in the settings, without its scale.
func (m metric) String() string {
	if len(m.labels) == 0 && m.name != none {
		return m.name
	}
	return m.name + m.matchers()
}

// matches reports whether a series has the metric's name and labels. A missing label equals an empty one, as in PromQL.
func (m metric) matches(series labels.Labels) bool {
	for name, value := range m.labels {
		if series.Get(string(name)) != string(value) {
			return false
		}
	}
	return series.Get(model.MetricNameLabel) == m.name
}

// metrics are the parsed Names by their keys in the settings. wait has two entries, the sum and the count of a histogram or
// summary, and prefix_cache two counters.
type metrics map[string]metric

// has reports whether any of the metrics has this name.
func (all metrics) has(name []byte) bool {
	for _, m := range all {
		if m.name == string(name) {
			return true
		}
	}
	return false
}
