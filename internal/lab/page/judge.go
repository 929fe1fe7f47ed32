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
	grids := []*stats.Grid{ratios(j.Verdicts)}
	for i, name := range results.MarkNames() {
		grids = append(grids, figuresOf(j.Verdicts, name, i))
	}
	_, err := fmt.Fprintf(w, "%s over its best rival, of %d. Waits (mean and p99) and times (mean, from arrival to end) below 10 ms count as 10 ms.\n\n", run, j.Verdicts[0].Rivals)
	if err != nil {
		return err
	}
	for _, g := range append(grids, unanswered(j.Verdicts), summary(j.Summary)) {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// ratios is a line for each family, with every mark.
func ratios(verdicts []results.Verdict) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{append([]string{"ratio"}, results.MarkNames()...)}}
	for i := range verdicts {
		v := &verdicts[i]
		line := []string{v.Family}
		for _, m := range v.Marks {
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

// figuresOf are the means of one mark, and which rival was the best.
func figuresOf(verdicts []results.Verdict, name string, mark int) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{name, "judged", "best rival", ""}}}
	for i := range verdicts {
		m := &verdicts[i].Marks[mark]
		g.Rows = append(g.Rows, []string{verdicts[i].Family, amount(m.Ours), amount(m.Best), m.Rival})
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

func summary(all []results.Summary) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{"all families", "median", "worst", "limit", "above it"}}}
	for _, s := range all {
		above := "none"
		if len(s.Above) > 0 {
			above = strings.Join(s.Above, ", ")
		}
		g.Rows = append(g.Rows, []string{s.Mark, fmt.Sprintf("%.2f", s.Median), fmt.Sprintf("%.2f", s.Worst), fmt.Sprintf("%.1f", s.Limit), above})
	}
	return g
}
