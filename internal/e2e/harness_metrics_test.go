package e2e

import (
	"fmt"
	"math"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// samples is a scrape of the sidecar's metrics.
type samples map[string]*dto.MetricFamily

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
	return parser.TextToMetricFamilies(res.Body)
}

// sum adds up the gauges and counters of a name whose labels include these
// pairs of name and value.
func (s samples) sum(name string, pairs ...string) float64 {
	total := 0.0
	for _, m := range s[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		matches := true
		for i := 0; i < len(pairs); i += 2 {
			matches = matches && labels[pairs[i]] == pairs[i+1]
		}
		if matches {
			total += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return total
}

// metric is sum of a scrape of now; NaN, which equals nothing, if there is none.
func (s *sidecar) metric(name string, pairs ...string) float64 {
	scraped, err := s.scrape()
	if err != nil || scraped[name] == nil {
		return math.NaN()
	}
	return scraped.sum(name, pairs...)
}
