package metrics

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// Enough of PromQL to find the metrics, labels and values that an expression speaks of.
var (
	usage    = regexp.MustCompile(`\b((?:pilotfish|go|process|promhttp)_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	part     = regexp.MustCompile(`_(?:bucket|sum|count)$`)
)

// vocabulary is every metric family with its labels and their values.
type vocabulary map[string]map[string][]string

// growing is a fleet whose every figure is known.
func growing(upstreams []pool.State) Live {
	return Live{
		Capacity: &capacity.Advice{Bounded: new(capacity.Need)}, Upstreams: upstreams, Connections: map[string]Bounded{"jobs": {}, "admin": {}, "mesh": {}}, Fleet: quality.Status{
			Mode: quality.Growing, Trend: quality.Trend{Jobs: 20, Slope: 0.5}, DeadlineSeconds: new(90.0),
		}}
}

// wholeVocabulary is that of a sidecar with an upstream that has reported.
func wholeVocabulary(t *testing.T) vocabulary {
	t.Helper()
	m := newMetrics()
	m.Joined([]string{"u:1"})
	m.SetSource(func(time.Time) Live { return growing([]pool.State{{Upstream: at("u:1")}}) })
	families, err := m.registry.Gather()
	require.NoError(t, err)
	all := vocabulary{}
	for _, f := range families {
		labels := map[string][]string{}
		for _, s := range f.Metric {
			for _, l := range s.Label {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			labels["le"] = bounds(f.Metric[0].GetHistogram())
		case dto.MetricType_SUMMARY:
			labels["quantile"] = nil
		}
		all[f.GetName()] = labels
	}
	return all
}

// bounds are those of a histogram's buckets, as each version of Prometheus writes them.
func bounds(h *dto.Histogram) (all []string) {
	for _, b := range h.Bucket {
		text := strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
		all = append(all, text, text+".0")
	}
	return all
}

// family is the labels of a metric by the name of any of its series.
func (v vocabulary) family(name string) (map[string][]string, bool) {
	if labels, ok := v[name]; ok {
		return labels, true
	}
	labels, ok := v[part.ReplaceAllString(name, "")]
	_, histogram := labels["le"]
	_, summary := labels["quantile"]
	return labels, ok && (histogram || summary)
}

// check reports what an expression says of metrics that is not so.
func (v vocabulary) check(expr string) (faults []string) {
	known := []string{"job", "instance"} // a scrape gives these
	for _, use := range usage.FindAllStringSubmatch(expr, -1) {
		labels, ok := v.family(use[1])
		if !ok {
			faults = append(faults, "no metric "+use[1])
			continue
		}
		for l := range labels {
			known = append(known, l)
		}
		for _, m := range matcher.FindAllStringSubmatch(use[2], -1) {
			faults = append(faults, wrongMatcher(use[1], labels, m[1], m[2])...)
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.FieldsFuncSeq(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(known, l) {
				faults = append(faults, "no label "+l)
			}
		}
	}
	return faults
}

// wrongMatcher reports a label that the metric does not have, or the words
// that are none of its values.
func wrongMatcher(metric string, labels map[string][]string, label, value string) (faults []string) {
	if label == "job" || label == "instance" {
		return nil
	}
	values, ok := labels[label]
	if !ok {
		return []string{"no label " + label + " at " + metric}
	}
	if strings.HasPrefix(value, "$") { // a variable of the dashboard
		return nil
	}
	for word := range strings.SplitSeq(value, "|") {
		if !slices.Contains(values, word) {
			faults = append(faults, "no value "+word+" of "+label+" at "+metric)
		}
	}
	return faults
}

func TestWrongExpressionsAreFound(t *testing.T) {
	v := wholeVocabulary(t)
	for expr, fault := range map[string]string{
		`sum(pilotfish_job_total)`:                                    "no metric pilotfish_job_total",
		`pilotfish_panic_mode_bucket`:                                 "no metric pilotfish_panic_mode_bucket",
		`rate(pilotfish_jobs_total{outcome=~"failed|no-answer"}[5m])`: "no value no-answer of outcome at pilotfish_jobs_total",
		`pilotfish_jobs_total{result="failed"}`:                       "no label result at pilotfish_jobs_total",
		`sum by (job, reason) (pilotfish_jobs_total)`:                 "no label reason",
	} {
		assert.Equal(t, []string{fault}, v.check(expr))
	}
	assert.Empty(t, v.check(`sum by (job, le) (pilotfish_pick_seconds_bucket{job="x"})`))
}
