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
	name           string
	peers, columns []string           // in the order in which they were added
	values         map[cell][]float64 // one for each round
}

type cell struct{ peer, column string }

// machineName describes the machine and the Go version.
func machineName() string {
	fs, err := procfs.NewDefaultFS()
	processors, unread := fs.CPUInfo()
	kernel, unknown := fs.SysctlStrings("kernel.osrelease")
	if err := errors.Join(err, unread, unknown); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d x %s, Linux %s, %s", len(processors), processors[0].ModelName, kernel[0], runtime.Version())
}

// add adds a peer's figures of a round, or the reason why there are none.
func (r *results) add(name, peer string, figures []figure, err error) {
	if err != nil {
		r.missing = append(r.missing, strings.Join(strings.Fields(fmt.Sprintf("%s, %s: %v", peer, name, err)), " "))
		r.failed++
	}
	if len(figures) == 0 {
		return
	}
	at := slices.IndexFunc(r.tables, func(t *table) bool { return t.name == name })
	if at < 0 {
		at = len(r.tables)
		r.tables = append(r.tables, &table{name: name, values: map[cell][]float64{}})
	}
	t := r.tables[at]
	if !slices.Contains(t.peers, peer) {
		t.peers = append(t.peers, peer)
	}
	for _, f := range figures {
		if !slices.Contains(t.columns, f.name) {
			t.columns = append(t.columns, f.name)
		}
		t.values[cell{peer, f.name}] = append(t.values[cell{peer, f.name}], f.value)
	}
}

// WriteText writes the tables: medians over the rounds, with minimum and maximum. It returns an error if
// measurements failed.
func (r *results) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n\n", machineName(), r.setting)
	for _, t := range r.tables {
		g := &stats.Grid{Left: 1, Heads: [][]string{append([]string{t.name}, t.columns...)}}
		for _, peer := range t.peers {
			cells := []string{peer}
			for _, c := range t.columns {
				cells = append(cells, spread(t.values[cell{peer, c}]))
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

// svg draws the first column of each table: a bar is the median of the rounds, the line on
// it spans minimum and maximum.
func (r *results) svg() []byte {
	const left, wide, high, head = 190, 560, 18, 30
	var out strings.Builder
	y := 10
	for _, t := range r.tables {
		most := 1e-9
		for _, peer := range t.peers {
			most = max(most, slices.Max(t.values[cell{peer, t.columns[0]}]))
		}
		x := func(v float64) float64 { return left + v/most*(wide-60) }
		fmt.Fprintf(&out, `<text x="0" y="%d" font-weight="bold">%s: %s, seconds</text>`+"\n", y+12, t.name, t.columns[0])
		y += head
		for _, peer := range t.peers {
			least, median, largest := ordered(t.values[cell{peer, t.columns[0]}])
			color := "#9aa5b1"
			if isOurs(peer) {
				color = "#3b7dd8"
			}
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+
				`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000"/>`+"\n",
				left-8, y+11, peer, left, y, x(median)-left, high-5, color, x(least), x(largest), y+6, y+6)
			y += high
		}
		y += 14
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n%s</svg>\n", left+wide, y, &out)
}

// The columns of a race that are compared.
const meanWait, p99Wait, meanTime = "mean wait, low", "p99 wait, low", "mean duration, low"

func isOurs(peer string) bool { return strings.HasPrefix(peer, "pilotfish") }

// ratios returns pilotfish's waits divided by the lowest of the peers, for each column and round. The lowest can be a
// different peer's in each. A table without waits has no ratios.
func (t *table) ratios() (text string) {
	for _, ours := range t.peers {
		if !isOurs(ours) {
			continue
		}
		line := ours + ", over the best of the others:"
		for _, c := range []string{meanWait, p99Wait, meanTime} {
			var ratios []float64
			for round, v := range t.values[cell{ours, c}] {
				least := math.Inf(1)
				for _, peer := range t.peers {
					if theirs := t.values[cell{peer, c}]; !isOurs(peer) && round < len(theirs) {
						least = min(least, theirs[round])
					}
				}
				if math.IsInf(least, 1) {
					return "" // no peer ran
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

// spread formats the median, the minimum and the maximum.
func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	least, median, largest := ordered(values)
	if len(values) == 1 {
		return number(median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(median), number(least), number(largest))
}

func ordered(values []float64) (least, median, largest float64) {
	v := slices.Sorted(slices.Values(values))
	return v[0], (v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[len(v)-1]
}

// number formats a number with three digits.
func number(x float64) string {
	switch {
	case x >= 99.95 || x <= -99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995 || x <= -9.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
