package deploy

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/discovery/consul"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"
	sigs "sigs.k8s.io/yaml"
)

// rules is the part of a file of alerts that the tests check.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Labels      struct{ Severity string }
			Annotations map[string]string
		}
	}
}

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

// Each rule is changed so that it never or always fires. Its test must then fail, also without the other rules.
func TestTestsOfAlertsCanFail(t *testing.T) {
	var all map[string]any
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts.yml"), &all))
	for _, g := range all["groups"].([]any) {
		for _, r := range g.(map[string]any)["rules"].([]any) {
			rule := r.(map[string]any)
			alert := rule["alert"].(string)
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

func TestEachAlertHasTestsAndTexts(t *testing.T) {
	var alerts, objective rules
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts.yml"), &alerts))
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "objective.yml"), &objective))
	alerts.Groups = append(alerts.Groups, objective.Groups...)
	runbook, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	require.NoError(t, err)
	sections := strings.ToLower(string(runbook))
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alert string `json:"alertname"`
				Fired []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	require.NoError(t, sigs.Unmarshal(read(t, "prometheus", "alerts_test.yml"), &tests))
	fired, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			if len(c.Fired) > 0 {
				fired[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			assert.True(t, fired[r.Alert], "%s is not tested to fire", r.Alert)
			assert.True(t, quiet[r.Alert], "%s is not tested to keep quiet", r.Alert)
			assert.Contains(t, []string{"page", "ticket"}, r.Labels.Severity, r.Alert)
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
			assert.NotEmpty(t, r.Annotations["description"], r.Alert)
			section, ok := strings.CutPrefix(r.Annotations["runbook"], "docs/runbook.md#")
			assert.True(t, ok && strings.Contains(sections, "\n## "+section+"\n"), "%s has no section in the runbook", r.Alert)
		}
	}
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
