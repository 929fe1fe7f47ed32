package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// metricsPage returns the metrics of a running pilotfish after some jobs.
func metricsPage(t *testing.T) []byte {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound) // a failed report
		}
	}))
	defer upstream.Close()
	jobs, admin := serve(t, upstream.Listener.Addr().String())
	for _, body := range []string{`{"project_id": 1, "priority": "high"}`, `{"project_id": 1}`, `{`} {
		res, err := http.Post("http://"+jobs+"/v1/jobs", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	res, err := http.Get("http://" + admin + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), "pilotfish_jobs_total")
	return page
}

// promtool accepts the metrics of a running pilotfish.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	page := metricsPage(t)
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(page)
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}

// Each label and label value in alerts and panels exists in the metric.
func TestLabelsInExpressionsExist(t *testing.T) {
	series := regexp.MustCompile(`(?m)^(pilotfish_\w+)\{(.*)\} `).FindAllStringSubmatch(string(metricsPage(t)), -1)
	has := func(name string, m *labels.Matcher) bool {
		known := false
		for _, s := range series {
			known = known || s[1] == name
			value := regexp.MustCompile(`\b` + m.Name + `="([^"]*)"`).FindStringSubmatch(s[2])
			if s[1] == name && value != nil && m.Matches(value[1]) {
				return true
			}
		}
		return !known // some metrics do not exist yet
	}
	chosen := 0
	for _, expr := range expressions(t) {
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		require.NoError(t, err, expr)
		parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				for _, m := range v.LabelMatchers {
					if m.Name == labels.MetricName || m.Name == "job" || m.Name == "instance" || m.Name == "le" {
						continue
					}
					chosen++
					assert.True(t, has(v.Name, m), "%s: no series has %s", expr, m)
				}
			}
			return nil
		})
	}
	assert.Greater(t, chosen, 8)
}

// expressions returns the expressions of the alerts and the panels.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range []string{"alerts.yml", "objective.yml", "recording.yml"} {
		var alerts struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
		require.NoError(t, yaml.Unmarshal(read(t, "prometheus", file), &alerts))
		for _, g := range alerts.Groups {
			for _, r := range g.Rules {
				all = append(all, r.Expr)
			}
		}
	}
	for _, p := range theDashboard(t).Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$upstream", ".*", "$job", ".*", "$instance", ".*").Replace(target.Expr)
			assert.NotContains(t, expr, "$", "%s: a variable that the dashboard does not have", p.Title)
			all = append(all, expr)
		}
	}
	return all
}

// serve runs pilotfish, and returns the host:port of its two ports.
func serve(t *testing.T, upstream string) (jobs, admin string) {
	t.Helper()
	sidecar := exec.Command(pilotfish, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", upstream)
	log, err := sidecar.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, sidecar.Start())
	lines := bufio.NewScanner(log)
	t.Cleanup(func() {
		_ = sidecar.Process.Signal(syscall.SIGTERM) // fails if the process has ended
		for lines.Scan() {
		}
		assert.NoError(t, sidecar.Wait())
	})
	for lines.Scan() {
		var line struct{ Msg, Jobs, Admin string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Msg == "serving" {
			return line.Jobs, line.Admin
		}
	}
	require.FailNow(t, "pilotfish ended before it served")
	return "", ""
}
