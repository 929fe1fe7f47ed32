package deploy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
