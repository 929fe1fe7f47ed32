package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

const (
	// maxVectorBytes is the maximum length of a response of a Prometheus server. It is enough for
	// about ten thousand upstreams.
	maxVectorBytes = 32 << 20
	// scrapedFigure is the name of the figure that holds the time of a scrape, in Unix seconds.
	scrapedFigure = "scraped"
)

// pollPrometheus queries a Prometheus server for the load of all upstreams, and passes new reports
// to the pool. The upstreams themselves are polled only for their cache listings. Without
// upstreams it does nothing, and runs again soon, so that the first upstream is not queried late.
//
// The server must scrape each upstream as one target whose label instance is the
// upstream's address, and must keep the label priority. A report is as old as its
// scrape, so an Interval shorter than the server's scrape_interval gives no newer
// reports. After a failed scrape, the server returns nothing for the upstream, and there
// is no report. A response with warnings can be partial, so an upstream that it lacks is not
// suspected. Neither is one that two jobs scrape.
func (s *Source) pollPrometheus(ctx context.Context, _ bool) pace {
	s.mu.Lock()
	upstreams := maps.Clone(s.all)
	s.mu.Unlock()
	if len(upstreams) == 0 {
		return soon
	}
	scrapes := make(map[string]*scrape, len(upstreams))
	for address := range upstreams {
		scrapes[address] = new(scrape)
	}
	var queried time.Time
	var warning string // not empty: the vector may lack healthy upstreams
	failed := get(ctx, s.prometheus, request{
		url: queryURL(s.cfg.Prometheus, s.metrics), accept: "application/json", max: maxVectorBytes, timeout: s.cfg.Timeout,
	}, func(resp response) error {
		queried = resp.at
		var err error
		warning, err = readVector(resp.body, func(l sampleLabels, at, value float64) {
			one := scrapes[l.Instance]
			if one == nil {
				if form, err := settings.Address(l.Instance); err == nil {
					one = scrapes[form]
				}
			}
			if one != nil {
				one.add(l, at, value)
			}
		})
		return err
	})
	for address, u := range upstreams {
		one, err := scrapes[address], failed
		var report pool.Report
		var waits total
		if err == nil {
			report, waits, err = one.load(queried, s.metrics)
		}
		if err != nil && warning != "" {
			err = fmt.Errorf("%w; Prometheus warns that its response may be partial: %s", err, warning)
		}
		switch {
		case err != nil:
			u.unreported(ctx, fmt.Errorf("from Prometheus: %w", err), failed != nil || warning != "" || scrapes[address].twice != nil)
		case one.at() != u.scraped:
			u.scraped = one.at()
			u.report(ctx, report, waits)
		}
	}
	return usual
}

// queryURL returns the URL of an instant query for all metrics of all upstreams, and for the time of
// each upstream's scrape, because samples of an instant query have the time of the query. The
// sums drop NaN and all other labels. The label pilotfish has the name of the figure.
func queryURL(server string, all metrics) string {
	var parts []string
	add := func(figure, format string, m metric) {
		vector := fmt.Sprintf(format, m.matchers("__name__="+strconv.Quote(m.name)))
		parts = append(parts, fmt.Sprintf(`label_replace(%s, "pilotfish", %q, "", "")`, vector, figure))
	}
	for _, figure := range slices.Sorted(maps.Keys(all)) {
		if m := all[figure]; m.name != "" {
			add(figure, "sum by (instance, job, priority) (%s > -Inf)", m)
		}
	}
	load := all["stalled"] // or running: one of them is configured
	if load.name == "" {
		load = all["running"]
	}
	add(scrapedFigure, "min by (instance, job) (timestamp(%s))", load)
	return strings.TrimSuffix(server, "/") + "/api/v1/query?" + url.Values{"query": {strings.Join(parts, " or ")}}.Encode()
}

// sampleLabels are the labels of a sample that are read. Others are skipped and take no memory.
type sampleLabels struct {
	Instance string `json:"instance"`
	Job      string `json:"job"`
	Priority string `json:"priority"`
	Figure   string `json:"pilotfish"`
}

// sample is one element of the vector that a query returns: a time, in Unix seconds on
// the server's clock, and a value. In JSON they are [1763677245.123, "0.5"]: the value
// is a string because JSON has no infinity.
type sample struct {
	Labels sampleLabels       `json:"metric"`
	Point  *[2]jsontext.Value `json:"value"`
}

// readVector reads the response to an instant query to its end, and returns its first warning.
func readVector(body io.Reader, each func(l sampleLabels, at, value float64)) (warning string, err error) {
	var v struct {
		Status   string           `json:"status"`
		Warnings elements[string] `json:"warnings"`
		Data     struct {
			Type   string           `json:"resultType"`
			Result elements[sample] `json:"result"`
		} `json:"data"`
	}
	v.Warnings.each = func(text *string) error {
		warning = cmp.Or(warning, *text)
		return nil
	}
	v.Data.Result.each = func(s *sample) error {
		if s.Point == nil {
			return errors.New("a sample has no value")
		}
		var at float64
		var text string
		if err := errors.Join(json.Unmarshal(s.Point[0], &at), json.Unmarshal(s.Point[1], &text)); err != nil {
			return err
		}
		value, err := strconv.ParseFloat(text, 64)
		if err == nil {
			each(s.Labels, at, value)
		}
		*s = sample{}
		return err
	}
	if err := readDocument(body, &v); err != nil {
		return warning, err
	}
	if v.Status != "success" || v.Data.Type != "vector" {
		return warning, fmt.Errorf("status %q and a result of type %q, not \"success\" and \"vector\"", v.Status, v.Data.Type)
	}
	return warning, nil
}

// scrape is the metrics of one upstream in one response of Prometheus.
type scrape struct {
	job      string
	twice    error   // not nil if two jobs of Prometheus scrape the upstream
	answered float64 // time of the query, in Unix seconds on Prometheus's clock
	figures  figures // nil if Prometheus has no sample of the upstream
}

func (s *scrape) add(l sampleLabels, at, value float64) {
	if s.figures == nil {
		s.job, s.answered, s.figures = l.Job, at, figures{}
	}
	if l.Job != s.job && s.twice == nil {
		s.twice = fmt.Errorf("two scrape jobs have this upstream, %q and %q: only one may", s.job, l.Job)
	}
	s.figures.add(l.Figure, l.Priority, value)
}

// at returns the time of the scrape, on Prometheus's clock.
func (s *scrape) at() float64 { return s.figures[scrapedFigure].sums[selection.Low] }

// load converts a scrape to a report. queried is the time of the query. The report's age is the
// difference of two times of Prometheus's clock, which can differ from the sidecar's.
func (s *scrape) load(queried time.Time, names metrics) (r pool.Report, wait total, err error) {
	switch {
	case s.figures == nil:
		return r, wait, errors.New("no metrics of this upstream: either it is not scraped, or the label instance is not its address")
	case s.twice != nil:
		return r, wait, s.twice
	}
	if r, wait, err = loadOf(s.figures, names); err != nil {
		return r, wait, err
	}
	age := s.answered - s.at()
	if !(math.Abs(age) <= longest.Seconds()) {
		return r, wait, fmt.Errorf("the time of its scrape is missing, or further than %v from that of the query", longest)
	}
	r.At = queried.Add(-max(seconds(age), 0))
	return r, wait, nil
}
