package metrics

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/test/grafana"
)

// deploy/grafana/dashboard.json is generated from testdata/head.json and testdata/panels.yaml:
//
//	go test ./internal/metrics -run TestDashboard -update
const dashboardPath = "../../deploy/grafana/dashboard.json"

var update = flag.Bool("update", false, "write the dashboard")

func TestDashboardIsMadeFromTheTable(t *testing.T) {
	text, err := os.ReadFile("testdata/panels.yaml")
	require.NoError(t, err)
	var rows []grafana.Row
	require.NoError(t, yaml.Load(text, &rows, yaml.WithKnownFields()))
	head, err := os.ReadFile("testdata/head.json")
	require.NoError(t, err)
	want := grafana.Dashboard(t, head, rows)
	if *update {
		require.NoError(t, os.WriteFile(dashboardPath, want, 0o644)) //nolint:gosec // a file of the repository
	}
	got, err := os.ReadFile(dashboardPath)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "write it anew: go test ./internal/metrics -run TestDashboard -update")
}

var ownName = regexp.MustCompile(`\bpilotfish_\w+`)

// Each metric is on a panel, and panels and alerts name only existing metrics.
func TestDashboardAndAlertsNameEachMetricAndNoOther(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1"})
	m.CacheEvent("u:1", true)
	m.HintInvalid("u:1")
	m.SetSource(everything)
	families, err := m.registry.Gather()
	require.NoError(t, err)
	shown, err := os.ReadFile(dashboardPath)
	require.NoError(t, err)
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	named := map[string]bool{}
	part := regexp.MustCompile(`_(?:bucket|sum|count)$`)
	for _, name := range ownName.FindAllString(string(shown), -1) {
		named[part.ReplaceAllString(name, "")] = true
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "pilotfish_") {
			assert.True(t, named[f.GetName()], "%s is on no panel", f.GetName())
			delete(named, f.GetName())
		}
	}
	assert.Empty(t, named, "panels of no metric")
	for _, name := range ownName.FindAllString(string(alerts), -1) {
		assert.True(t, bytes.Contains(shown, []byte(part.ReplaceAllString(name, ""))), "an alert names %s, which is no metric", name)
	}
}
