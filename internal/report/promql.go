package report

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Labels of a response besides the one that holds the address.
const (
	nameLabel     = "__name__"
	jobLabel      = "job"
	priorityLabel = "priority"
	kindLabel     = "pilotfish" // marks what is no metric
	scrapedKind   = "scraped"   // the value is when a scrape was, in Unix seconds
)

// queryLabels are labels that cannot hold an address.
var queryLabels = []string{nameLabel, jobLabel, priorityLabel, kindLabel}

// query returns the PromQL that asks for all metrics of all upstreams at one
// instant, and for when each upstream was scraped. The vector itself lacks
// that: its samples have the time of the query. The sums drop all other labels. A
// metric that wants labels has a sum of its own, marked with its text.
func query(all metrics, instance string) string {
	var names, parts []string
	first := ""
	for _, m := range all.series() {
		if m.name == "" {
			continue
		}
		if first == "" {
			first = m.name
		}
		if len(m.labels) == 0 {
			names = append(names, regexp.QuoteMeta(m.name))
		}
	}
	by := fmt.Sprintf("sum by (%s, %s, %s, %s)", nameLabel, instance, jobLabel, priorityLabel)
	if len(names) > 0 {
		parts = append(parts, fmt.Sprintf("%s ({%s=~%s})", by, nameLabel, strconv.Quote(strings.Join(names, "|"))))
	}
	for _, m := range all.series() {
		if len(m.labels) > 0 {
			parts = append(parts, fmt.Sprintf(`label_replace(%s (%s), %q, %s, "", "")`, by,
				m.matchers(nameLabel+"="+strconv.Quote(m.name)), kindLabel, strconv.Quote(strings.ReplaceAll(m.id(), "$", "$$"))))
		}
	}
	parts = append(parts, fmt.Sprintf(`label_replace(min by (%s, %s) (timestamp({%s=%s})), %q, %q, "", "")`,
		instance, jobLabel, nameLabel, strconv.Quote(first), kindLabel, scrapedKind))
	return strings.Join(parts, " or ")
}

// queryURL returns where the server answers the query.
func queryURL(s Server, all metrics) string {
	return strings.TrimSuffix(s.URL, "/") + "/api/v1/query?" + url.Values{"query": {query(all, s.InstanceLabel)}}.Encode()
}

// series lists the metrics as Prometheus stores them: of a histogram, the sum
// and the count.
func (m *metrics) series() []metric {
	return []metric{
		m.stalled, m.running, m.cores, m.coresBusy, m.completed, m.failed,
		sumOf(m.wait), countOf(m.wait), sumOf(m.execution), countOf(m.execution), sumOf(m.response), countOf(m.response),
	}
}

func sumOf(histogram metric) metric   { return histogram.part("_sum") }
func countOf(histogram metric) metric { return histogram.part("_count") }

// part is one of the series of a histogram.
func (m metric) part(suffix string) metric {
	if m.name != "" {
		m.name += suffix
	}
	return m
}

// sample is one element of the vector that a query returns.
type sample struct {
	Labels map[string]string `json:"metric"`
	Point  *point            `json:"value"`
}

// point is a value at an instant, in Unix seconds on the server's clock. The
// JSON is [1763677245.123, "0.5"], because JSON has no infinity.
type point struct{ at, value float64 }

func (p *point) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var pair [2]jsontext.Value
	if err := json.UnmarshalDecode(dec, &pair); err != nil {
		return err
	}
	var text string
	if err := errors.Join(json.Unmarshal(pair[0], &p.at), json.Unmarshal(pair[1], &text)); err != nil {
		return err
	}
	var err error
	p.value, err = strconv.ParseFloat(text, 64)
	return err
}

// eachSample is called with the samples of a vector as they are read, so that
// only those of interest take memory.
type eachSample func(sample)

func (each eachSample) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return errors.New("the result is not an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		var s sample
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		if s.Point == nil {
			return errors.New("a sample has no value")
		}
		each(s)
	}
	_, err := dec.ReadToken()
	return err
}

// readVector reads the response to an instant query to its end.
func readVector(body io.Reader, each func(sample)) error {
	source := &tokenLimit{from: body}
	source.dec = jsontext.NewDecoder(source)
	var v struct {
		Status string `json:"status"`
		Data   struct {
			Type   string     `json:"resultType"`
			Result eachSample `json:"result"`
		} `json:"data"`
	}
	v.Data.Result = each
	err := json.UnmarshalDecode(source.dec, &v)
	if err == nil {
		err = ended(source.dec)
	}
	switch {
	case source.exceeded != nil:
		return source.exceeded
	case errors.Is(err, io.EOF):
		return errors.New("empty")
	case err != nil:
		return err
	case v.Status != "success" || v.Data.Type != "vector":
		return fmt.Errorf("status %q and a result of type %q, not \"success\" and \"vector\"", v.Status, v.Data.Type)
	}
	return nil
}
