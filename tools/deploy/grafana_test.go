package deploy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// dashboard is Grafana's, as far as the tests here look into it.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Datasource  struct{ UID string }
		Targets     []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
}

func theDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	require.NoError(t, json.Unmarshal(read(t, "grafana", "dashboard.json"), &d))
	require.NotEmpty(t, d.Panels)
	return d
}

func TestPanelsAreWhole(t *testing.T) {
	d := theDashboard(t)
	assert.NotEmpty(t, d.UID)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Less(t, x, 24, "%s is beyond the right edge", p.Title)
				require.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			assert.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			assert.False(t, refs[target.RefID], "%s: two queries are %s", p.Title, target.RefID)
			refs[target.RefID] = true
			assert.Contains(t, target.Expr, `{job=~"$job", instance=~"$instance"`, "%s ignores the choice of sidecars", p.Title)
		}
	}
}

// The expressions are put into recording rules, Grafana's variables aside, for
// promtool to parse.
func TestPromtoolAcceptsTheExpressions(t *testing.T) {
	d := theDashboard(t)
	variables := []string{"$__rate_interval", "5m"}
	for _, v := range d.Templating.List {
		variables = append(variables, "$"+v.Name, ".*")
	}
	fill := strings.NewReplacer(variables...)
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []rule
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expr := fill.Replace(target.Expr)
			assert.NotContains(t, expr, "$", "%s: a variable that the dashboard does not have", p.Title)
			all = append(all, rule{fmt.Sprintf("panel_%d_%s", p.ID, target.RefID), expr})
		}
	}
	require.Greater(t, len(all), 40)
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}})
	require.NoError(t, err)
	must(t, "promtool", "check", "rules", write(t, "rules.yml", text))
}
