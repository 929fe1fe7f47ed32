package report

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// scrape is the metrics of one upstream in one response of Prometheus.
type scrape struct {
	job      string
	twice    error   // set when two jobs of Prometheus scrape the upstream
	at       float64 // when it was scraped, in Unix seconds on Prometheus's clock; NaN is unknown
	answered float64 // when Prometheus looked it up, on the same clock
	series   map[string][selection.Priorities]float64
}

func newScrape() *scrape { return &scrape{at: math.NaN()} }

func (s *scrape) add(x sample) {
	job := x.Labels[jobLabel]
	if s.series == nil {
		s.job, s.answered, s.series = job, x.Point.at, map[string][selection.Priorities]float64{}
	}
	if job != s.job && s.twice == nil {
		s.twice = fmt.Errorf("two scrape jobs have this upstream, %q and %q: only one may", s.job, job)
	}
	if x.Labels[kindLabel] == scrapedKind {
		s.at = x.Point.value
		return
	}
	priority, _ := selection.ParsePriority(x.Labels[priorityLabel])
	series := x.Labels[nameLabel]
	if matched := x.Labels[kindLabel]; matched != "" {
		series = matched
	}
	sums := s.series[series]
	sums[priority] += x.Point.value
	s.series[series] = sums
}

func (s *scrape) levels(m metric) (sums [selection.Priorities]float64, err error) {
	name := m.id()
	sums, ok := s.series[name]
	if !ok {
		return sums, fmt.Errorf("metric %s is missing", name)
	}
	for _, value := range sums {
		if err := checkCount(name, value); err != nil {
			return sums, err
		}
	}
	return sums, nil
}

func (s *scrape) total(m metric) total {
	sums, summed := s.series[sumOf(m).id()]
	counts, counted := s.series[countOf(m).id()]
	if !summed || !counted {
		return unknown
	}
	return total{
		sum:   sums[selection.Low] + sums[selection.High],
		count: counts[selection.Low] + counts[selection.High],
	}
}

// age returns how long before the response the scrape was. Both times are
// Prometheus's own, so that its clock need not agree with the sidecar's.
func (s *scrape) age() (time.Duration, error) {
	age := s.answered - s.at
	if !(math.Abs(age) <= longest.Seconds()) {
		return 0, fmt.Errorf("the time of its scrape is missing, or further than %v from that of the query", longest)
	}
	return max(seconds(age), 0), nil
}

// lastScrape is the newest scrape of one upstream that was reported.
type lastScrape struct {
	totals  totals
	scraped float64   // when it was, on Prometheus's clock
	at      time.Time // the same on the sidecar's clock
}

// next makes a report of a scrape that Prometheus was asked for at asked. It
// returns l again where s is no newer: one of a pair of servers may be behind
// the other.
func (l lastScrape) next(s *scrape, asked time.Time, names metrics) (pool.Report, lastScrape, error) {
	switch {
	case s.series == nil:
		return pool.Report{}, l, errors.New("no metrics of this upstream: either it is not scraped, or the instance label is not its address")
	case s.twice != nil:
		return pool.Report{}, l, s.twice
	}
	r, now, err := loadOf(s, names)
	if err != nil {
		return pool.Report{}, l, err
	}
	age, err := s.age()
	if err != nil {
		return pool.Report{}, l, err
	}
	r.At = asked.Add(-age)
	if s.at == l.scraped || !r.At.After(l.at) {
		return pool.Report{}, l, nil
	}
	r.Wait, r.Response = now.since(l.totals)
	return r, lastScrape{totals: now, scraped: s.at, at: r.At}, nil
}
