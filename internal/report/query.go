package report

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Labels that an answer has besides the one that bears the address.
const (
	nameLabel     = "__name__"
	jobLabel      = "job"
	priorityLabel = "priority"
	kindLabel     = "pilotfish" // marks what is no metric
	scrapedKind   = "scraped"   // its value is when a scrape was, in Unix seconds
)

// taken are labels that cannot bear an address.
var taken = []string{nameLabel, jobLabel, priorityLabel, kindLabel}

// query returns the PromQL that asks for all metrics of all upstreams at one
// instant, and for when each upstream was scraped, which a vector itself does
// not tell: its samples bear the time of the query. The sums keep labels that
// nobody needs out of the answer.
func query(names Names, instance string) string {
	var series []string
	for _, n := range names.series() {
		series = append(series, regexp.QuoteMeta(n))
	}
	return fmt.Sprintf(`sum by (%s, %s, %s, %s) ({%s=~%s}) or label_replace(min by (%s, %s) (timestamp({%s=%s})), %q, %q, "", "")`,
		nameLabel, instance, jobLabel, priorityLabel, nameLabel, strconv.Quote(strings.Join(series, "|")),
		instance, jobLabel, nameLabel, strconv.Quote(names.Stalled), kindLabel, scrapedKind)
}

// queryURL returns where the server answers the query.
func queryURL(s Server, names Names) string {
	return strings.TrimSuffix(s.URL, "/") + "/api/v1/query?" + url.Values{"query": {query(names, s.InstanceLabel)}}.Encode()
}

// series lists the names as Prometheus stores them: of a histogram, the sum
// and the count.
func (n *Names) series() []string {
	return []string{
		n.Stalled, n.Running, n.Cores, n.CoresBusy, n.Completed,
		sumOf(n.Wait), countOf(n.Wait), sumOf(n.Execution), countOf(n.Execution), sumOf(n.Response), countOf(n.Response),
	}
}

func sumOf(histogram string) string   { return histogram + "_sum" }
func countOf(histogram string) string { return histogram + "_count" }
