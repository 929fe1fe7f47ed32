package metrics

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deploy/grafana/dashboard.json is generated from the rows of panels_test.go:
//
//	go test ./internal/metrics -run TestDashboard -update

const dashboardPath = "../../deploy/grafana/dashboard.json"

var update = flag.Bool("update", false, "write the dashboard")

type object = map[string]any

func TestDashboardIsMadeFromTheTable(t *testing.T) {
	want := dashboard(t)
	if *update {
		require.NoError(t, os.WriteFile(dashboardPath, want, 0o644)) //nolint:gosec // a file of the repository
	}
	got, err := os.ReadFile(dashboardPath)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "write it anew: go test ./internal/metrics -run TestDashboard -update")
}

// replace replaces the first of each pair by the second.
func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// expression adds Grafana's variables to an expression. An expression with a value for each upstream gets those
// of the chosen upstreams.
func expression(short string) string {
	if strings.Contains(short, "by (upstream)") || strings.Contains(short, "by (upstream,") {
		short = replace(short, "{}", `{job=~"$job", instance=~"$instance", upstream=~"$upstream"}`)
	}
	return replace(short, "[]", "[$__rate_interval]", "{}", `{job=~"$job", instance=~"$instance"}`,
		"{outcome", `{job=~"$job", instance=~"$instance", outcome`)
}

// dashboard returns the whole document, one panel per line.
func dashboard(t *testing.T) []byte {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	variable := func(name, label, query string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source, "definition": query, "query": object{"query": query, "refId": "A"},
			"refresh": 2, "multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"}, "sort": 1,
		}
	}
	head := object{
		"uid": "pilotfish", "title": "Pilotfish", "description": "Jobs, their placement and the upstreams, as the sidecars see them.",
		"tags": []string{"pilotfish"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1, "timezone": "browser",
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "annotations": object{"list": annotations(source)}, "links": []any{},
		"templating": object{"list": []any{
			object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}},
			variable("job", "Job", "label_values(pilotfish_build_info, job)"),
			variable("instance", "Sidecar", `label_values(pilotfish_build_info{job=~"$job"}, instance)`),
			variable("upstream", "Upstream", `label_values(pilotfish_upstream_in_flight{job=~"$job", instance=~"$instance"}, upstream)`),
		}},
	}
	var panels [][]byte
	add := func(p object) {
		p["id"] = len(panels) + 1
		panels = append(panels, marshal(t, p))
	}
	y := 0
	for _, r := range rows {
		add(object{"type": "row", "title": r.title, "gridPos": grid(24, 1, 0, y), "panels": []any{}})
		y++
		width, height := 8, 8
		if r.panels[0].kind == "stat" {
			width, height = 4, 4
		}
		for i, p := range r.panels {
			panel := p.object()
			panel["gridPos"], panel["datasource"] = grid(width, height, i*width%24, y+i*width/24*height), source
			for _, target := range panel["targets"].([]object) {
				target["datasource"] = source
			}
			add(panel)
		}
		y += (len(r.panels)*width + 23) / 24 * height
	}
	text := bytes.TrimSuffix(marshal(t, head), []byte("}"))
	return append(append(append(text, ",\"panels\": [\n"...), bytes.Join(panels, []byte(",\n"))...), "\n]}\n"...)
}

// annotations are marks on all panels for events that can explain their figures.
func annotations(source object) (list []object) {
	for _, a := range []struct{ name, color, text, query string }{
		{"Jobs fail", "red", "{{instance}}: jobs fail", `pilotfish_fleet_mode{} == 3`},
		{"Queue grows", "orange", "{{instance}}: queue grows", `pilotfish_fleet_mode{} == 2`},
		{"Not eligible", "orange", "{{upstream}} is not eligible", `min by (upstream) (pilotfish_upstream_eligible{}) == 0`},
		{"Configuration read", "blue", "{{instance}}: configuration read", `changes(pilotfish_config_last_reload_success_timestamp_seconds{}[2m]) > 0`},
		{"Restart", "purple", "{{instance}}: restart", `changes(process_start_time_seconds{}[2m]) > 0`},
	} {
		list = append(list, object{
			"name": a.name, "enable": true, "iconColor": a.color, "datasource": source, "expr": expression(a.query),
			"titleFormat": a.name, "textFormat": a.text, "step": "60s",
		})
	}
	return list
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return bytes.TrimSpace(text.Bytes())
}

func grid(w, h, x, y int) object { return object{"w": w, "h": h, "x": x, "y": y} }

// object is the panel as Grafana reads it.
func (p *panel) object() object {
	defaults := object{"unit": p.unit, "min": 0}
	options := object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}}
	switch p.kind {
	case "stat":
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "background", "graphMode": "none"}
	case "timeseries":
		defaults["custom"] = object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
		options["tooltip"] = object{"mode": "multi", "sort": "desc"}
	case "state-timeline":
		words := object{}
		for i, w := range p.words {
			words[string(rune('0'+i))] = object{"text": w, "color": p.colors[i], "index": i}
		}
		defaults["max"], defaults["mappings"] = len(p.words)-1, []any{object{"type": "value", "options": words}}
		defaults["custom"] = object{"fillOpacity": 70, "lineWidth": 0}
		options["showValue"] = "never"
	}
	if p.steps != nil {
		steps := []any{object{"color": p.colors[0], "value": nil}}
		for i, at := range p.steps {
			steps = append(steps, object{"color": p.colors[i+1], "value": at})
		}
		defaults["thresholds"], defaults["color"] = object{"mode": "absolute", "steps": steps}, object{"mode": "thresholds"}
	}
	var targets []object
	for i := 0; i < len(p.queries); i += 2 {
		target := object{"refId": string(rune('A' + i/2)), "expr": expression(p.queries[i+1]), "legendFormat": p.queries[i]}
		if p.kind == "stat" || p.kind == "table" {
			target["instant"], target["range"] = true, false
		}
		if p.kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	return object{
		"type": p.kind, "title": p.title, "description": p.about, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}},
	}
}

var ownName = regexp.MustCompile(`\bpilotfish_\w+`)

// Each metric is on a panel, and panels and alerts name only existing metrics.
func TestDashboardAndAlertsNameEachMetricAndNoOther(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1"})
	m.CacheEvent("u:1", true)
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
