package stats

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tables are the results of several runs, in the thesis's layout. Encoded as
// JSON they are for machines.
type Tables struct {
	Rows      []Row         `json:"rows"`
	Variances []VarianceRow `json:"wait_variance"`
}

// Add appends the rows of a run.
func (t *Tables) Add(name string, r *Run) {
	t.Rows = append(t.Rows, r.Rows(name)...)
	t.Variances = append(t.Variances, r.WaitVariance(name))
}

// WriteText writes one aligned table per quantity, a line per run, and the
// variance of the waits per upstream.
func (t *Tables) WriteText(w io.Writer) error {
	for _, q := range Quantities() {
		if lines := t.quantity(q); len(lines) > 2 {
			if err := write(w, lines); err != nil {
				return err
			}
		}
	}
	if len(t.Variances) == 0 {
		return nil
	}
	return write(w, t.variances())
}

// quantity returns the cells of one quantity's table: two lines of headings, then the runs.
func (t *Tables) quantity(q Quantity) [][]string {
	priorities := []string{"high", "low"}
	heads := [][]string{{string(q)}, {"run"}}
	for _, p := range priorities {
		heads[0] = append(heads[0], p, "", "", "", "", "")
		heads[1] = append(heads[1], "mean", "median", "p90", "p95", "p99", "max")
	}
	lines := heads
	for _, r := range t.Rows {
		column := slices.Index(priorities, r.Priority)
		if r.Quantity != q || column < 0 {
			continue
		}
		at := slices.IndexFunc(lines[2:], func(line []string) bool { return line[0] == r.Run })
		if at < 0 {
			at = len(lines) - 2
			lines = append(lines, append([]string{r.Run}, slices.Repeat([]string{"-"}, 12)...))
		}
		for i, v := range []float64{r.Mean, r.Median, r.P90, r.P95, r.P99, r.Max} {
			lines[at+2][1+6*column+i] = number(v)
		}
	}
	return lines
}

// variances returns the cells of the thesis's table 6.
func (t *Tables) variances() [][]string {
	heads := []string{"wait variance", "all"}
	for i := range t.Variances[0].Upstreams {
		heads = append(heads, strconv.Itoa(i))
	}
	lines := [][]string{heads}
	for _, r := range t.Variances {
		line := []string{r.Run, number(r.All)}
		for _, v := range r.Upstreams {
			line = append(line, number(v))
		}
		lines = append(lines, line)
	}
	return lines
}

// number shows two digits behind the point, or two in all when it is too small
// for that; NaN, which is no number, as a dash.
func number(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if v != 0 && v < 0.005 {
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// write aligns the first column to the left, all others to the right, and ends
// with an empty line.
func write(w io.Writer, lines [][]string) error {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			if i == 0 {
				fmt.Fprintf(&text, "%-*s", widths[i], cell)
			} else {
				fmt.Fprintf(&text, "  %*s", widths[i], cell)
			}
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String()+"\n")
	return err
}
