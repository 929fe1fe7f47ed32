//go:build cluster

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// A scrape every half second is replayed as one every 30 s, because alerts look at minutes.
const (
	scraped, replayed = 500 * time.Millisecond, 30 * time.Second
	stretch           = float64(replayed / scraped)
)

// replay is the series that a Prometheus server scrapes from a sidecar, with time stretched.
type replay struct {
	c     *cluster
	rules string // of the alerts
	asked *regexp.Regexp
	steps int
	lines map[string][]string // values by series; _ is a missing value
}

func newReplay(t *testing.T, c *cluster) *replay {
	t.Helper()
	rules, err := filepath.Abs("../../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	names := regexp.MustCompile(`\b(pilotfish|process)_\w+`).FindAllString(string(text), -1)
	slices.Sort(names)
	asked := regexp.MustCompile("^(" + strings.Join(slices.Compact(names), "|") + ")$")
	return &replay{c: c, rules: rules, asked: asked, lines: map[string][]string{}}
}

// scrape does one scrape, which fails while the sidecar does not run.
func (r *replay) scrape() (up bool) {
	now, err := r.c.sidecar.scrape()
	set := func(m model.Metric, value string) {
		m = m.Clone()
		m["job"], m["instance"] = "pilotfish", "a"
		line := r.lines[m.String()]
		for len(line) < r.steps {
			line = append(line, "_")
		}
		r.lines[m.String()] = append(line, value)
	}
	for _, s := range now {
		name := string(s.Metric[model.MetricNameLabel])
		if !r.asked.MatchString(name) {
			continue
		}
		if strings.HasSuffix(name, "_age_seconds") { // a duration is stretched, too
			s.Value *= model.SampleValue(stretch)
		}
		set(s.Metric, s.Value.String())
	}
	set(model.Metric{model.MetricNameLabel: "up"}, map[bool]string{true: "1", false: "0"}[err == nil])
	r.steps++
	time.Sleep(scraped)
	return err == nil
}

// record scrapes for this many further steps.
func (r *replay) record(steps int) {
	for range steps {
		r.scrape()
	}
}

// until scrapes until a gauge or counter has a value.
func (r *replay) until(is func(float64) bool, name string, labels ...string) {
	r.c.t.Helper()
	for end := time.Now().Add(4 * patience); ; r.scrape() {
		if is(r.c.sidecar.metric(name, labels...)) {
			return
		}
		require.True(r.c.t, time.Now().Before(end), "%s %v does not change", name, labels)
	}
}

// calm scrapes until no metric shows trouble. The values of that scrape are used for the
// following hours.
func (r *replay) calm() {
	r.c.t.Helper()
	raised := map[string]float64{
		"pilotfish_fleet_mode": 2, "pilotfish_mode": 3, "pilotfish_panic_mode": 1,
		"pilotfish_breaker_state": 1, "pilotfish_upstream_down": 1, "pilotfish_upstream_suspect": 1, "pilotfish_upstream_slow": 1,
	}
	ill := func() string {
		for series, line := range r.lines {
			name, _, _ := strings.Cut(series, "{")
			least, asked := raised[name]
			value, _ := strconv.ParseFloat(line[len(line)-1], 64)
			if asked && len(line) == r.steps && value >= least {
				return series
			}
		}
		return ""
	}
	for end := time.Now().Add(4 * patience); !r.scrape() || ill() != ""; {
		require.True(r.c.t, time.Now().Before(end), "%s stays", ill())
	}
}

// judge lets promtool replay the scrapes and two further hours without events. The alerts must
// fire between the two steps, and none at the end.
func (r *replay) judge(from, to int, alerts ...string) {
	r.c.t.Helper()
	type query map[string]any
	var input []query
	for series, line := range r.lines {
		for len(line) < r.steps {
			line = append(line, "_")
		}
		input = append(input, query{"series": series, "values": strings.Join(line, " ") + " " + line[len(line)-1] + "x240"})
	}
	at := func(step int) string { return fmt.Sprint(time.Duration(step) * replayed) }
	var firing []query
	for _, a := range alerts {
		firing = append(firing, query{"labels": fmt.Sprintf("{alertname=%q}", a), "value": 1})
	}
	const expr = `group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[%s]))`
	text, err := json.Marshal(query{
		"rule_files": []string{r.rules}, "evaluation_interval": "30s",
		"tests": []query{{"interval": "30s", "input_series": input, "promql_expr_test": []query{
			{"expr": fmt.Sprintf(expr, at(from)), "eval_time": at(from), "exp_samples": []query{}},
			{
				"expr":      fmt.Sprintf(strings.Replace(expr, "ALERTS{", `ALERTS{alertname=~"`+strings.Join(alerts, "|")+`",`, 1), at(to-from)),
				"eval_time": at(to), "exp_samples": firing,
			},
			{"expr": fmt.Sprintf(expr, "30s"), "eval_time": at(r.steps + 240), "exp_samples": []query{}},
		}}},
	})
	require.NoError(r.c.t, err)
	file := filepath.Join(r.c.t.TempDir(), "replay.json")
	require.NoError(r.c.t, os.WriteFile(file, text, 0o600))
	out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput()
	require.NoError(r.c.t, err, "%s", out)
}
