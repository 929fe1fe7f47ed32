package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// samples is a scrape of the sidecar's metrics.
type samples model.Vector

func (s *sidecar) scrape() (samples, error) {
	res, err := http.Get("http://" + s.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", res.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		return nil, err
	}
	all, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	return samples(all), err
}

// sum adds the gauges and counters of a name whose labels include these pairs of name and
// value.
func (s samples) sum(name string, pairs ...string) float64 {
	total := 0.0
	for _, m := range s {
		matches := m.Metric[model.MetricNameLabel] == model.LabelValue(name)
		for i := 0; i < len(pairs); i += 2 {
			matches = matches && m.Metric[model.LabelName(pairs[i])] == model.LabelValue(pairs[i+1])
		}
		if matches {
			total += float64(m.Value)
		}
	}
	return total
}

// count returns the number of samples of a name.
func (s samples) count(name string) (n int) {
	for _, m := range s {
		if m.Metric[model.MetricNameLabel] == model.LabelValue(name) {
			n++
		}
	}
	return n
}

// metric is sum of a new scrape, or NaN, which equals nothing, if the scrape fails.
func (s *sidecar) metric(name string, pairs ...string) float64 {
	scraped, err := s.scrape()
	if err != nil || scraped.count(name) == 0 {
		return math.NaN()
	}
	return scraped.sum(name, pairs...)
}
