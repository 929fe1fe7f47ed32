package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/pool"
)

// Labels of a response.
const (
	nameLabel     = "__name__"
	instanceLabel = "instance" // an upstream's address
	jobLabel      = "job"
	priorityLabel = "priority"
	figureLabel   = "pilotfish" // what the value is
	scrapedFigure = "scraped"   // when a scrape was, in Unix seconds
)

// query returns the PromQL that asks for all metrics of all upstreams at one
// instant, and for when each upstream was scraped. The vector itself lacks
// that: its samples have the time of the query. The sums drop all other labels.
func query(all metrics) string {
	var parts, selectors []string
	add := func(m metric, suffixes ...string) {
		for _, suffix := range suffixes {
			if m.name == "" {
				continue
			}
			selector := m.matchers(nameLabel + "=" + strconv.Quote(m.name+suffix))
			selectors = append(selectors, selector)
			parts = append(parts, marked(fmt.Sprintf("sum by (%s, %s, %s) (%s)", instanceLabel, jobLabel, priorityLabel, selector), m.figure+suffix))
		}
	}
	for _, m := range []metric{all.stalled, all.running, all.cores, all.coresBusy, all.completed, all.failed} {
		add(m, "")
	}
	add(all.wait, sumSuffix, countSuffix)
	// One of stalled and running is there, and comes first.
	parts = append(parts, marked(fmt.Sprintf("min by (%s, %s) (timestamp(%s))", instanceLabel, jobLabel, selectors[0]), scrapedFigure))
	return strings.Join(parts, " or ")
}

// marked is a vector whose samples say which figure they are.
func marked(vector, figure string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, vector, figureLabel, figure)
}

// queryURL returns where a server answers the query.
func queryURL(server string, all metrics) string {
	return strings.TrimSuffix(server, "/") + "/api/v1/query?" + url.Values{"query": {query(all)}}.Encode()
}

// labels are those of a sample that are read. Others take no memory, however many there are.
type labels struct {
	Instance string `json:"instance"`
	Job      string `json:"job"`
	Priority string `json:"priority"`
	Figure   string `json:"pilotfish"`
}

// sample is one element of the vector that a query returns: a value at an instant, in
// Unix seconds on the server's clock. The JSON of those is [1763677245.123, "0.5"],
// because JSON has no infinity.
type sample struct {
	Labels labels             `json:"metric"`
	Point  *[2]jsontext.Value `json:"value"`
}

// read reads the Point.
func (s *sample) read() (at, value float64, err error) {
	if s.Point == nil {
		return 0, 0, errors.New("a sample has no value")
	}
	var text string
	if err := errors.Join(json.Unmarshal(s.Point[0], &at), json.Unmarshal(s.Point[1], &text)); err != nil {
		return 0, 0, err
	}
	value, err = strconv.ParseFloat(text, 64)
	return at, value, err
}

// readVector reads the response to an instant query to its end.
func readVector(body io.Reader, each func(l labels, at, value float64)) error {
	var v struct {
		Status string `json:"status"`
		Data   struct {
			Type   string           `json:"resultType"`
			Result elements[sample] `json:"result"`
		} `json:"data"`
	}
	v.Data.Result.each = func(s *sample) error {
		at, value, err := s.read()
		if err == nil {
			each(s.Labels, at, value)
		}
		*s = sample{}
		return err
	}
	if err := readDocument(body, &v); err != nil {
		return err
	}
	if v.Status != "success" || v.Data.Type != "vector" {
		return fmt.Errorf("status %q and a result of type %q, not \"success\" and \"vector\"", v.Status, v.Data.Type)
	}
	return nil
}

// scrape is the metrics of one upstream in one response of Prometheus.
type scrape struct {
	job      string
	twice    error   // set when two jobs of Prometheus scrape the upstream
	at       float64 // when it was scraped, in Unix seconds on Prometheus's clock; NaN is unknown
	answered float64 // when Prometheus looked it up, on the same clock
	figures  figures // nil where Prometheus knows nothing
}

func newScrape() *scrape { return &scrape{at: math.NaN()} }

// add takes in a sample.
func (s *scrape) add(l labels, at, value float64) {
	if s.figures == nil {
		s.job, s.answered, s.figures = l.Job, at, figures{}
	}
	if l.Job != s.job && s.twice == nil {
		s.twice = fmt.Errorf("two scrape jobs have this upstream, %q and %q: only one may", s.job, l.Job)
	}
	if l.Figure == scrapedFigure {
		s.at = value
		return
	}
	s.figures.add(l.Figure, l.Priority, value)
}

// load makes a report of a scrape that Prometheus was asked for at asked. Its age is the
// difference of two times that are Prometheus's own, so that its clock need not agree
// with the sidecar's.
func (s *scrape) load(asked time.Time, names metrics) (r pool.Report, wait total, err error) {
	switch {
	case s.figures == nil:
		return r, wait, errors.New("no metrics of this upstream: either it is not scraped, or the label instance is not its address")
	case s.twice != nil:
		return r, wait, s.twice
	}
	if r, wait, err = loadOf(s.figures, names); err != nil {
		return r, wait, err
	}
	age := s.answered - s.at
	if !(math.Abs(age) <= longest.Seconds()) {
		return r, wait, fmt.Errorf("the time of its scrape is missing, or further than %v from that of the query", longest)
	}
	r.At = asked.Add(-max(seconds(age), 0))
	return r, wait, nil
}
