package report

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// scrape is the figures of one upstream as Prometheus saw them last.
type scrape struct {
	job      string
	twice    error   // says that two of Prometheus's jobs scrape the upstream
	at       float64 // when it was, in Unix seconds on Prometheus's clock; NaN is not told
	answered float64 // when Prometheus looked it up, likewise
	series   map[string][selection.Priorities]float64
}

func newScrape() *scrape { return &scrape{at: math.NaN()} }

func (s *scrape) add(x sample) {
	job := x.Labels[jobLabel]
	if s.series == nil {
		s.job, s.answered, s.series = job, x.Point.at, map[string][selection.Priorities]float64{}
	}
	if job != s.job && s.twice == nil {
		s.twice = fmt.Errorf("two jobs scrape it, %q and %q", s.job, job)
	}
	if x.Labels[kindLabel] == scrapedKind {
		s.at = x.Point.value
		return
	}
	priority, _ := selection.ParsePriority(x.Labels[priorityLabel])
	sums := s.series[x.Labels[nameLabel]]
	sums[priority] += x.Point.value
	s.series[x.Labels[nameLabel]] = sums
}

func (s *scrape) levels(name string) (sums [selection.Priorities]float64, err error) {
	sums, ok := s.series[name]
	if !ok {
		return sums, fmt.Errorf("metric %s is missing", name)
	}
	for _, value := range sums {
		if err := counted(name, value); err != nil {
			return sums, err
		}
	}
	return sums, nil
}

func (s *scrape) total(name string) total {
	sums, summed := s.series[sumOf(name)]
	counts, counted := s.series[countOf(name)]
	if !summed || !counted {
		return unknown
	}
	return total{
		sum:   sums[selection.Low] + sums[selection.High],
		count: counts[selection.Low] + counts[selection.High],
	}
}

// age returns how long before the answer the scrape was. Both are Prometheus's
// own times, so that its clock need not agree with the sidecar's.
func (s *scrape) age() (time.Duration, error) {
	age := s.answered - s.at
	if !(math.Abs(age) <= longest.Seconds()) {
		return 0, errors.New("the time of its scrape makes no sense")
	}
	return max(seconds(age), 0), nil
}
