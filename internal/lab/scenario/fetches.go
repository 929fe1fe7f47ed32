package scenario

import (
	"context"
	"fmt"
	"io"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
)

// fetchBounds are the longest fetches of each row but the last, in seconds.
var fetchBounds = [...]float64{0.1, 0.3, 1, 3, 10}

// fetches are how long the fetches of one row took, how long they were expected to take,
// and how many times as long that was.
type fetches struct{ took, expected, ratio *stats.Distribution }

func (f *fetches) add(took, expected float64) {
	if f.took == nil {
		*f = fetches{stats.NewDistribution(), stats.NewDistribution(), stats.NewDistribution()}
	}
	f.took.Add(took)
	f.expected.Add(expected)
	f.ratio.Add(expected / took)
}

// ShowFetches plays runs with the scenario's first seed, and shows for each how long its
// fetches took and how long the sidecars expected them to take.
func (s *Scenario) ShowFetches(ctx context.Context, runs []*Run, out io.Writer) error {
	for _, r := range runs {
		table, err := s.fetches(ctx, r)
		if err != nil {
			return err
		}
		if err := table.WriteText(out); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) fetches(ctx context.Context, r *Run) (*stats.Grid, error) {
	c, in, err := s.open(r, s.Seed)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var rows [len(fetchBounds) + 1]fetches
	c.Observe = func(r *sim.Result) {
		if r.Fetched && r.Load > 0 {
			row, took := 0, r.Load.Seconds()
			for row < len(fetchBounds) && took > fetchBounds[row] {
				row++
			}
			rows[row].add(took, r.Expected.Seconds())
		}
	}
	if _, err := sim.Run(ctx, c); err != nil {
		return nil, fmt.Errorf("run %q, seed %d: %w", r.Name, s.Seed, err)
	}
	g := &stats.Grid{
		Title: fmt.Sprintf("%s, seed %d: fetches, and how long they were expected to take", r.Name, s.Seed), Left: 1,
		Heads: [][]string{
			{"", "", "median, s", "", "expected / taken", "", ""},
			{"fetches that take", "how many", "taken", "expected", "p10", "median", "p90"},
		},
	}
	for i, f := range rows {
		if f.took != nil {
			g.Rows = append(g.Rows, f.cells(i))
		}
	}
	return g, nil
}

// cells is row i of the table.
func (f *fetches) cells(i int) []string {
	var span string
	switch i {
	case 0:
		span = fmt.Sprintf("up to %v s", fetchBounds[0])
	case len(fetchBounds):
		span = fmt.Sprintf("more than %v s", fetchBounds[i-1])
	default:
		span = fmt.Sprintf("%v to %v s", fetchBounds[i-1], fetchBounds[i])
	}
	cells := []string{span, stats.Thousands(int(f.took.Summary().Count))}
	for _, x := range []float64{
		f.took.Quantile(0.5), f.expected.Quantile(0.5), f.ratio.Quantile(0.1), f.ratio.Quantile(0.5), f.ratio.Quantile(0.9),
	} {
		cells = append(cells, fmt.Sprintf("%.2f", x))
	}
	return cells
}
