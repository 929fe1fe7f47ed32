package report

import (
	"errors"
	"time"

	"example.org/pilotfish/internal/pool"
)

// heard is what is known of one upstream from Prometheus's answers so far.
type heard struct {
	totals
	scraped float64   // when the last scrape was, on Prometheus's clock
	at      time.Time // the same on the sidecar's
}

// learn makes a report of a scrape that Prometheus was asked for at asked.
// There is no news in the one known already, or in an older one, as the other
// of a pair of servers may have it.
func (h *heard) learn(s *scrape, asked time.Time, names Names) (r pool.Report, news bool, err error) {
	switch {
	case s.series == nil:
		return r, false, errors.New("it has nothing of this upstream")
	case s.twice != nil:
		return r, false, s.twice
	}
	r, now, err := loadOf(s, names)
	if err != nil {
		return r, false, err
	}
	age, err := s.age()
	if err != nil {
		return r, false, err
	}
	r.At = asked.Add(-age)
	if s.at == h.scraped || !r.At.After(h.at) {
		return r, false, nil
	}
	r.Wait, r.Response = now.since(h.totals)
	*h = heard{totals: now, scraped: s.at, at: r.At}
	return r, true, nil
}
