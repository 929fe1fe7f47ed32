package deploy

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/discovery/consul"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"
	sigs "sigs.k8s.io/yaml"

	"example.org/pilotfish/test/program"
)

var update = flag.Bool("update", false, "write monitor/prometheusrule.yaml anew")

// The operator's rules equal the tested ones, and link to a page of the runbook.
func TestTheOperatorsRulesAreTheAlerts(t *testing.T) {
	var spec, recorded map[string]any
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts.yml"), &spec))
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "recording.yml"), &recorded))
	for _, g := range spec["groups"].([]any) {
		for _, r := range g.(map[string]any)["rules"].([]any) {
			annotations := r.(map[string]any)["annotations"].(map[string]any)
			annotations["runbook_url"] = "https://example.org/pilotfish/" + annotations["runbook"].(string)
			delete(annotations, "runbook")
		}
	}
	spec["groups"] = append(spec["groups"].([]any), recorded["groups"].([]any)...)
	text, err := sigs.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": spec,
		"metadata": map[string]any{"name": "pilotfish", "labels": map[string]any{"app.kubernetes.io/name": "pilotfish"}},
	})
	require.NoError(t, err)
	if *update {
		writeTo(t, filepath.Join(root, "deploy", "kubernetes", "monitor", "prometheusrule.yaml"), text)
	}
	assert.Equal(t, string(text), string(read(t, "kubernetes", "monitor", "prometheusrule.yaml")),
		"write it anew: go -C tools/deploy test -run OperatorsRules -update")
	assert.Len(t, objects(t, "monitor"), 3)
}

func prometheusFile(name string) string { return filepath.Join(root, "deploy", "prometheus", name) }

func TestAlerts(t *testing.T) {
	must(t, "promtool", "test", "rules", prometheusFile("alerts_test.yml"), prometheusFile("recording_test.yml"))
}

// Each alert has a severity, texts and a section of the runbook. If it is changed so that it never or always fires, its test
// fails, also without the other rules.
func TestEachAlertHasTestsAndTexts(t *testing.T) {
	runbook, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	require.NoError(t, err)
	sections := strings.ToLower(string(runbook))
	var alerts, objective struct {
		Groups []struct{ Rules []map[string]any }
	}
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts.yml"), &alerts))
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "objective.yml"), &objective))
	require.NotEmpty(t, objective.Groups)
	for _, group := range append(alerts.Groups, objective.Groups...) {
		for _, rule := range group.Rules {
			alert, texts := rule["alert"].(string), rule["annotations"].(map[string]any)
			assert.Contains(t, []any{"page", "ticket"}, rule["labels"].(map[string]any)["severity"], alert)
			assert.NotEmpty(t, texts["summary"], alert)
			assert.NotEmpty(t, texts["description"], alert)
			section, ok := strings.CutPrefix(texts["runbook"].(string), "docs/runbook.md#")
			assert.True(t, ok && strings.Contains(sections, "\n## "+section+"\n"), "%s has no section in the runbook", alert)
			for _, wrong := range []string{`vector(1) < 0`, `group by (job, instance, upstream, priority, version) ({job="pilotfish"})`} {
				dir := t.TempDir()
				rule["expr"] = wrong
				broken, err := sigs.Marshal(map[string]any{"groups": []any{map[string]any{"name": "broken", "rules": []any{rule}}}})
				require.NoError(t, err)
				writeTo(t, filepath.Join(dir, "alerts.yml"), broken)
				writeTo(t, filepath.Join(dir, "alerts_test.yml"), testOf(t, alert))
				out, err := run("promtool", "test", "rules", filepath.Join(dir, "alerts_test.yml"))
				assert.Error(t, err, alert)
				assert.Contains(t, out, "alertname: "+alert)
			}
		}
	}
}

// testOf returns the file of tests with only the tests of one alert of alerts.yml.
func testOf(t *testing.T, alert string) []byte {
	t.Helper()
	var all map[string]any
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts_test.yml"), &all))
	all["rule_files"] = []string{"alerts.yml"}
	for _, test := range all["tests"].([]any) {
		if test.(map[string]any)["name"] == alert {
			all["tests"] = []any{test}
			text, err := sigs.Marshal(all)
			require.NoError(t, err)
			return text
		}
	}
	t.Fatalf("%s has no test", alert)
	return nil
}

// Debian's promtool is built without Consul. So each consul_sd_configs is checked against its
// type here, and promtool checks the rest.
func TestTheScrapeConfigurationIsAccepted(t *testing.T) {
	rest, err := withoutConsul(read(t, "prometheus", "scrape.yml"))
	require.NoError(t, err)
	must(t, "promtool", "check", "config", "--syntax-only", write(t, "scrape.yml", rest))
	assert.FileExists(t, prometheusFile("alerts.yml"), "rule_files names it")

	_, err = withoutConsul([]byte("scrape_configs: [{job_name: a, consul_sd_configs: [{server: a, service: b}]}]"))
	assert.ErrorContains(t, err, "field service not found")
}

// withoutConsul removes the consul_sd_configs from a configuration, after checking each against
// its type.
func withoutConsul(text []byte) (rest []byte, err error) {
	var all map[string]any
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, err
	}
	for _, s := range all["scrape_configs"].([]any) {
		scrape := s.(map[any]any)
		found, err := yaml.Marshal(scrape["consul_sd_configs"])
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(found, new([]*consul.SDConfig)); err != nil {
			return nil, err
		}
		delete(scrape, "consul_sd_configs")
	}
	return yaml.Marshal(all)
}

// metricsPage returns the metrics of a running pilotfish after some jobs.
func metricsPage(t *testing.T) []byte {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound) // a failed report
		}
	}))
	defer upstream.Close()
	sidecar := program.Serve(t, pilotfish, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", upstream.Listener.Addr().String())
	for _, body := range []string{`{"project_id": 1, "priority": "high"}`, `{"project_id": 1}`, `{`} {
		res, err := http.Post("http://"+sidecar.Jobs+"/v1/jobs", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	res, err := http.Get("http://" + sidecar.Admin + "/metrics")
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
		require.NoError(t, sigs.Unmarshal(read(t, "prometheus", file), &alerts))
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

// dashboard is the part of a Grafana dashboard that the tests check.
type dashboard struct {
	Panels []struct {
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr string }
	}
}

func theDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	require.NoError(t, json.Unmarshal(read(t, "grafana", "dashboard.json"), &d))
	require.NotEmpty(t, d.Panels)
	return d
}

func TestPanelLayout(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range theDashboard(t).Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Less(t, x, 24, "%s is beyond the right edge", p.Title)
				require.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			assert.Contains(t, target.Expr, `{job=~"$job", instance=~"$instance"`, "%s ignores the choice of sidecars", p.Title)
		}
	}
}
