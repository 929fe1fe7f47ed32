//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"example.org/pilotfish/lab/stats"
)

// figure is one number that was measured.
type figure struct {
	name  string
	value float64
}

// results are the figures of all rounds: a table for each scenario or trace, with a row for each peer.
type results struct {
	setting string
	tables  []*table
	missing []string // or failed
	failed  int
}

type table struct {
	name    string
	columns []string
	rows    []*row
}

type row struct {
	name   string
	values map[string][]float64 // of each round, by column
}

// machineName says on what was measured.
func machineName() string {
	fs, err := procfs.NewDefaultFS()
	processors, unread := fs.CPUInfo()
	kernel, unknown := fs.SysctlStrings("kernel.osrelease")
	if err := errors.Join(err, unread, unknown); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d x %s, Linux %s, %s", len(processors), processors[0].ModelName, kernel[0], runtime.Version())
}

// add adds a round's figures of a peer.
func (r *results) add(name, peer string, figures []figure) {
	if len(figures) == 0 {
		return
	}
	at := slices.IndexFunc(r.tables, func(t *table) bool { return t.name == name })
	if at < 0 {
		at = len(r.tables)
		r.tables = append(r.tables, &table{name: name})
	}
	t := r.tables[at]
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.name == peer })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{peer, map[string][]float64{}})
	}
	for _, f := range figures {
		if !slices.Contains(t.columns, f.name) {
			t.columns = append(t.columns, f.name)
		}
		t.rows[i].values[f.name] = append(t.rows[i].values[f.name], f.value)
	}
}

// fail notes a measurement that failed.
func (r *results) fail(peer, what string, err error) {
	r.missing = append(r.missing, strings.Join(strings.Fields(fmt.Sprintf("%s, %s: %v", peer, what, err)), " "))
	r.failed++
}

// WriteText writes the tables: medians over the rounds, with the least and the largest. It is an error that
// measurements failed.
func (r *results) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n\n", machineName(), r.setting)
	for _, t := range r.tables {
		g := &stats.Grid{Left: 1, Heads: [][]string{append([]string{t.name}, t.columns...)}}
		for _, row := range t.rows {
			cells := []string{row.name}
			for _, c := range t.columns {
				cells = append(cells, spread(row.values[c]))
			}
			g.Rows = append(g.Rows, cells)
		}
		_ = g.WriteText(&out)
		out.WriteString(t.ratios())
	}
	for _, line := range r.missing {
		fmt.Fprintln(&out, "missing or failed:", line)
	}
	_, err := io.WriteString(w, out.String())
	if err == nil && r.failed > 0 {
		err = fmt.Errorf("%d measurements failed", r.failed)
	}
	return err
}

// The columns of a race that are compared.
const meanWait, p99Wait = "mean wait, low", "p99 wait, low"

// ratios are pilotfish's waits over the least of the others, round by round. The least of each
// column counts, whoever's it is. A table without waits has none.
func (t *table) ratios() (text string) {
	isOurs := func(r *row) bool { return strings.HasPrefix(r.name, "pilotfish") }
	for _, ours := range t.rows {
		if !isOurs(ours) {
			continue
		}
		line := ours.name + ", over the best of the others:"
		for _, c := range []string{meanWait, p99Wait} {
			var ratios []float64
			for round, v := range ours.values[c] {
				least := math.Inf(1)
				for _, r := range t.rows {
					if !isOurs(r) && round < len(r.values[c]) {
						least = min(least, r.values[c][round])
					}
				}
				if math.IsInf(least, 1) {
					return "" // nobody else ran
				}
				ratios = append(ratios, v/least)
			}
			if len(ratios) == 0 {
				return ""
			}
			line += fmt.Sprintf(" %s %s times;", c, spread(ratios))
		}
		text += strings.TrimSuffix(line, ";") + "\n"
	}
	if text != "" {
		text += "\n"
	}
	return text
}

// spread is the median of some values, with the least and the largest.
func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(values))
	median := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if len(sorted) == 1 {
		return number(median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(median), number(sorted[0]), number(sorted[len(sorted)-1]))
}

// number writes three digits.
func number(x float64) string {
	switch {
	case x >= 99.95 || x <= -99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995 || x <= -9.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
