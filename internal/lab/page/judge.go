package page

import (
	"fmt"
	"io"
	"strings"

	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

// Judgement writes as text what came of the families: the ratios of all, for
// each mark the figures behind them, and the summary.
func Judgement(w io.Writer, j *results.Judgement) error {
	if len(j.Verdicts) == 0 {
		return nil
	}
	run := j.Verdicts[0].Run
	marks := func(v *results.Verdict) []results.Mark { return v.Marks }
	equals := func(v *results.Verdict) []results.Mark { return v.Equals }
	grids := []*stats.Grid{ratios("ratio", j.Verdicts, marks)}
	if len(j.Equals) > 0 {
		grids = append(grids, ratios("ratio, as many sidecars", j.Verdicts, equals))
	}
	for i, name := range results.MarkNames() {
		grids = append(grids, figuresOf(j.Verdicts, name, i))
	}
	_, err := fmt.Fprintf(w, "%s over its best rival, of %d. Waits (mean and p99) and times (mean, from arrival to end) below 10 ms count as 10 ms.\n\n", run, j.Verdicts[0].Rivals)
	if err != nil {
		return err
	}
	grids = append(grids, unanswered(j.Verdicts), summary("all families", j.Summary))
	if len(j.Equals) > 0 {
		grids = append(grids, summary("all families, as many sidecars", j.Equals))
	}
	for _, g := range grids {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// ratios is a line for each family, with every mark.
func ratios(title string, verdicts []results.Verdict, marks func(*results.Verdict) []results.Mark) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{append([]string{title}, results.MarkNames()...)}}
	for i := range verdicts {
		v := &verdicts[i]
		line := []string{v.Family}
		for _, m := range marks(v) {
			line = append(line, interval(m.Ratio, v.Seeds))
		}
		g.Rows = append(g.Rows, line)
	}
	return g
}

// interval is a ratio, with its interval if there are several seeds.
func interval(i stats.Interval, seeds int) string {
	if seeds < 2 {
		return fmt.Sprintf("%.2f", i.Value)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", i.Value, i.Low, i.High)
}

// figuresOf are the means of one mark, and which rivals were the best.
func figuresOf(verdicts []results.Verdict, name string, mark int) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{name, "judged", "best rival", "", "as many sidecars", ""}}}
	for i := range verdicts {
		v := &verdicts[i]
		m := v.Marks[mark]
		line := []string{v.Family, amount(m.Ours), amount(m.Best), m.Rival}
		if len(v.Equals) > 0 {
			line = append(line, amount(v.Equals[mark].Best), v.Equals[mark].Rival)
		}
		g.Rows = append(g.Rows, line)
	}
	return g
}

// amount is a time in seconds, or a count.
func amount(x float64) string {
	if x >= 1000 {
		return stats.Thousands(int(x + 0.5))
	}
	return fmt.Sprintf("%.3f", x)
}

// unanswered is how many jobs got no result.
func unanswered(verdicts []results.Verdict) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{"jobs of 1,000 without a result", "judged", "least of a rival"}}}
	for i := range verdicts {
		v := &verdicts[i]
		g.Rows = append(g.Rows, []string{v.Family, fmt.Sprintf("%.2f", v.Unanswered), fmt.Sprintf("%.2f", v.Fewest)})
	}
	return g
}

func summary(title string, all []results.Summary) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{title, "median", "worst", "limit", "above it"}}}
	for _, s := range all {
		above := "none"
		if len(s.Above) > 0 {
			above = strings.Join(s.Above, ", ")
		}
		g.Rows = append(g.Rows, []string{s.Mark, fmt.Sprintf("%.2f", s.Median), fmt.Sprintf("%.2f", s.Worst), fmt.Sprintf("%.1f", s.Limit), above})
	}
	return g
}
