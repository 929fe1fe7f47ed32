package metrics

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// What is deployed with pilotfish must speak of the metrics that there are.

const deployed = "../../deploy"

var (
	ownName = regexp.MustCompile(`\bpilotfish_\w+`)
	legend  = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// expressions are those of the dashboard and of the alerts, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	decodeDeployed(t, "grafana/dashboard.json", json.Unmarshal, &dashboard)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+": "+target.LegendFormat] = target.Expr
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	decodeDeployed(t, "prometheus/alerts.yml", yaml.Unmarshal, &alerts)
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			all["alert "+r.Alert] = r.Expr
		}
	}
	return all
}

func decodeDeployed(t *testing.T, path string, decode func([]byte, any) error, into any) {
	t.Helper()
	text, err := os.ReadFile(deployed + "/" + path)
	require.NoError(t, err)
	require.NoError(t, decode(text, into), path)
}

func TestDashboardAndAlertsUseMetricsThatExist(t *testing.T) {
	v := wholeVocabulary(t)
	all := expressions(t)
	require.Greater(t, len(all), 40)
	for where, expr := range all {
		assert.Empty(t, v.check(expr), "%s: %s", where, expr)
	}
}

func TestLegendsNameLabelsThatAreLeft(t *testing.T) {
	for where, expr := range expressions(t) {
		for _, l := range legend.FindAllStringSubmatch(where, -1) {
			kept := grouping.FindString(expr)
			assert.Regexp(t, `\b`+l[1]+`\b`, kept, where)
		}
	}
}

// An alert at night names the section that says what to do, and each section an alert.
func TestEachAlertHasItsSectionOfTheRunbook(t *testing.T) {
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct{ Runbook string }
			}
		}
	}
	decodeDeployed(t, "prometheus/alerts.yml", yaml.Unmarshal, &alerts)
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	sections := map[string]bool{}
	for _, s := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		sections[s[1]] = true
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			assert.True(t, sections[r.Alert], "%s has no section", r.Alert)
			assert.Equal(t, "docs/runbook.md#"+strings.ToLower(r.Alert), r.Annotations.Runbook)
			delete(sections, r.Alert)
		}
	}
	assert.Empty(t, sections, "sections of no alert")
}

func TestTheDashboardShowsEveryMetric(t *testing.T) {
	v := wholeVocabulary(t)
	shown := map[string]bool{}
	for where, expr := range expressions(t) {
		if strings.HasPrefix(where, "panel ") {
			for _, name := range ownName.FindAllString(expr, -1) {
				shown[name], shown[part.ReplaceAllString(name, "")] = true, true
			}
		}
	}
	for name := range v {
		if strings.HasPrefix(name, "pilotfish_") {
			assert.True(t, shown[name], "%s is on no panel", name)
		}
	}
}

func TestDocumentsSpeakOfMetricsThatExist(t *testing.T) {
	v := wholeVocabulary(t)
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	names := 0
	for _, path := range append(documents, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range ownName.FindAllString(string(text), -1) {
			names++
			_, ok := v.family(name)
			assert.True(t, ok, "%s: no metric %s", path, name)
		}
	}
	assert.Greater(t, names, 50)
}

func TestNothingDeployedSpeaksOfAMetricThatIsNone(t *testing.T) {
	v := wholeVocabulary(t)
	files := 0
	require.NoError(t, fs.WalkDir(os.DirFS(deployed), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(deployed + "/" + path)
		files++
		for _, name := range ownName.FindAllString(string(text), -1) {
			_, ok := v.family(name)
			assert.True(t, ok || name == "pilotfish_image", "%s: no metric %s", path, name) // the image is a variable of the Nomad job
		}
		return err
	}))
	assert.Greater(t, files, 10)
}
