// Package grafana generates the dashboard in deploy/grafana from a table of panels. A test of the metrics compares the
// dashboard with the table.
package grafana

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/quality"
)

type object = map[string]any

// Row is a row of the dashboard.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is one panel. Its kind is Grafana's type of panel.
type Panel struct {
	Title, About, Kind, Unit string
	Modes                    quality.Mode
	Words, Colors            []string
	Steps                    []float64
	Percentiles              struct{ Histogram, Label string }
	Queries                  []struct{ Legend, Query string }
}

// complete adds what a panel's short forms stand for.
func (p *Panel) complete() {
	p.Kind = cmp.Or(p.Kind, "timeseries")
	if p.Modes != "" {
		for _, mode := range quality.Modes(p.Modes) {
			p.Words = append(p.Words, string(mode))
		}
	}
	if of := p.Percentiles; of.Label != "" {
		p.addQuantile("p50", "0.5", of.Histogram, of.Label)
		p.addQuantile("p95", "0.95", of.Histogram, of.Label)
	}
}

func (p *Panel) addQuantile(name, quantile, histogram, label string) {
	p.Queries = append(p.Queries, struct{ Legend, Query string }{
		fmt.Sprintf("{{%s}} %s", label, name),
		fmt.Sprintf("histogram_quantile(%s, sum by (%s, le) (rate(%s_bucket{}[])))", quantile, label, histogram),
	})
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

// Dashboard returns the dashboard with these rows, one panel per line. file is everything but the panels, as JSON.
func Dashboard(t *testing.T, file []byte, rows []Row) []byte {
	t.Helper()
	var head object
	require.NoError(t, json.Unmarshal(file, &head))
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels [][]byte
	add := func(p object) {
		p["id"] = len(panels) + 1
		panels = append(panels, marshal(t, p))
	}
	y := 0
	for _, r := range rows {
		add(object{"type": "row", "title": r.Title, "gridPos": grid(24, 1, 0, y), "panels": []any{}})
		y++
		width, height := 8, 8
		if r.Panels[0].Kind == "stat" {
			width, height = 4, 4
		}
		for i := range r.Panels {
			r.Panels[i].complete()
			panel := r.Panels[i].object()
			panel["gridPos"], panel["datasource"] = grid(width, height, i*width%24, y+i*width/24*height), source
			for _, target := range panel["targets"].([]object) {
				target["datasource"] = source
			}
			add(panel)
		}
		y += (len(r.Panels)*width + 23) / 24 * height
	}
	text := bytes.TrimSuffix(marshal(t, head), []byte("}"))
	return append(append(append(text, ",\"panels\": [\n"...), bytes.Join(panels, []byte(",\n"))...), "\n]}\n"...)
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
func (p *Panel) object() object {
	defaults := object{"unit": p.Unit, "min": 0}
	options := object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}}
	switch p.Kind {
	case "stat":
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "background", "graphMode": "none"}
	case "timeseries":
		defaults["custom"] = object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
		options["tooltip"] = object{"mode": "multi", "sort": "desc"}
	case "state-timeline":
		words := object{}
		for i, w := range p.Words {
			words[string(rune('0'+i))] = object{"text": w, "color": p.Colors[i], "index": i}
		}
		defaults["max"], defaults["mappings"] = len(p.Words)-1, []any{object{"type": "value", "options": words}}
		defaults["custom"] = object{"fillOpacity": 70, "lineWidth": 0}
		options["showValue"] = "never"
	}
	if p.Steps != nil {
		steps := []any{object{"color": p.Colors[0], "value": nil}}
		for i, at := range p.Steps {
			steps = append(steps, object{"color": p.Colors[i+1], "value": at})
		}
		defaults["thresholds"], defaults["color"] = object{"mode": "absolute", "steps": steps}, object{"mode": "thresholds"}
	}
	var targets []object
	for i, q := range p.Queries {
		target := object{"refId": string(rune('A' + i)), "expr": expression(q.Query), "legendFormat": q.Legend}
		if p.Kind == "stat" || p.Kind == "table" {
			target["instant"], target["range"] = true, false
		}
		if p.Kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	return object{
		"type": p.Kind, "title": p.Title, "description": p.About, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}},
	}
}
