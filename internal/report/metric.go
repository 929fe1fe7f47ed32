package report

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"

	"example.org/pilotfish/internal/settings"
)

// metric says which samples of an upstream make up a figure: all of a name or, with
// labels, those that have them. The text is as in PromQL:
//
//	vllm:num_requests_running{model_name="llama"} * 0.5
type metric struct {
	name   string // "" is none
	labels []label
	scale  float64 // of the values; of a histogram, of its sum
}

type label struct{ name, value string }

// noMetric is the text for a figure that an upstream does not have.
const noMetric = "none"

// Bounds of a metric in the settings.
const (
	maxMetricBytes  = 1024
	maxMetricLabels = 16
)

var (
	errNoMetric = errors.New("is not the name of a metric")
	errLabels   = fmt.Errorf(`is not a metric such as jobs{kind="a"}, with at most %d labels`, maxMetricLabels)
	errScale    = errors.New("has a scale that is no positive number: write jobs * 0.001")
)

// parseMetric reads the text of a metric.
func parseMetric(text string) (m metric, err error) {
	if text == noMetric {
		return metric{scale: 1}, nil
	}
	m.scale = 1
	rest := text
	if at := strings.LastIndex(text, " * "); at >= 0 {
		m.scale, err = strconv.ParseFloat(strings.TrimSpace(text[at+3:]), 64)
		if err != nil || !(m.scale > 0) || math.IsInf(m.scale, 0) {
			return m, errScale
		}
		rest = strings.TrimSpace(text[:at])
	}
	var labels string
	m.name, labels, _ = strings.Cut(rest, "{")
	if m.labels, err = parseLabels(rest[len(m.name):], labels); err != nil {
		return m, err
	}
	m.name = strings.TrimSpace(m.name)
	if !model.UTF8Validation.IsValidMetricName(m.name) || strings.Contains(m.name, " * ") || m.name == nameLabel || len(text) > maxMetricBytes {
		return m, errNoMetric
	}
	return m, nil
}

// parseLabels reads what follows an opening brace; braces is that with the brace.
func parseLabels(braces, rest string) (all []label, err error) {
	if braces == "" {
		return nil, nil
	}
	for rest != "}" {
		name, quoted, ok := strings.Cut(rest, "=")
		name = strings.TrimSpace(name)
		prefix, err := strconv.QuotedPrefix(strings.TrimSpace(quoted))
		if !ok || err != nil || prefix[0] != '"' || !model.LegacyValidation.IsValidLabelName(name) || len(all) == maxMetricLabels {
			return nil, errLabels
		}
		value, _ := strconv.Unquote(prefix)
		all = append(all, label{name, value})
		rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(quoted), prefix))
		if after, more := strings.CutPrefix(rest, ","); more {
			rest = strings.TrimSpace(after)
		} else if rest != "}" {
			return nil, errLabels
		}
	}
	return all, nil
}

// id is the same for two metrics that take the same samples.
func (m metric) id() string {
	if len(m.labels) == 0 {
		return m.name
	}
	return m.name + m.matchers("")
}

// matchers are the labels as PromQL has them, behind others.
func (m metric) matchers(others string) string {
	var all []string
	if others != "" {
		all = append(all, others)
	}
	for _, l := range m.labels {
		all = append(all, l.name+"="+strconv.Quote(l.value))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// takes says whether a sample has the labels.
func (m metric) takes(sample *dto.Metric) bool {
	for _, want := range m.labels {
		value := ""
		for _, has := range sample.GetLabel() {
			if has.GetName() == want.name {
				value = has.GetValue()
			}
		}
		if value != want.value {
			return false
		}
	}
	return true
}

// metrics are the Names, read.
type metrics struct{ stalled, running, cores, coresBusy, completed, failed, wait, execution, response metric }

// fields are the metrics by their keys in the settings.
func (n *Names) fields(into *metrics) []nameField {
	return []nameField{
		{"stalled", n.Stalled, &into.stalled}, {"running", n.Running, &into.running},
		{"cores", n.Cores, &into.cores}, {"cores_busy", n.CoresBusy, &into.coresBusy},
		{"completed", n.Completed, &into.completed}, {"failed", n.Failed, &into.failed},
		{"wait", n.Wait, &into.wait}, {"execution", n.Execution, &into.execution}, {"response", n.Response, &into.response},
	}
}

type nameField struct {
	key, text string
	into      *metric
}

// metrics reads the names. What is wrong with them goes to f.
func (n *Names) metrics(f *settings.Faults) metrics {
	var m metrics
	taken := map[string]string{}
	for _, field := range n.fields(&m) {
		parsed, err := parseMetric(field.text)
		*field.into = parsed
		other, twice := taken[parsed.id()]
		switch {
		case err != nil:
			f.Add(field.key, "%q %v", field.text, err)
		case parsed.name == "":
		case twice:
			f.Add(field.key, "%q is reports.names.%s already", field.text, other)
		default:
			taken[parsed.id()] = field.key
		}
	}
	if n.Stalled == noMetric && n.Running == noMetric {
		f.Add("running", "one of running and stalled must be a metric: nothing else tells the load")
	}
	return m
}
