package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/lab/sources"
	"example.org/pilotfish/lab/stats"
)

// limit is the ratio that no family should exceed.
const limit = 1.1

// WriteText writes the table of a judgement.
func (j *Judgement) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, `sources: %s (%s)
%s
A number below 1 says that jobs wait less with pilotfish's policy, expected, than with a rival that has the same information.
All waits are the wait until a job starts and those between its joblets. Rivals have as many processes as pilotfish, or one
process that sees every job (", 1"). The settings of a family are drawn from its ranges: %d settings, each judged on 2 seeds or
more. The contender that stands for a base is chosen for each setting by the waits on %d other seeds; after each seed, the better
half of the limits remains. "best" is the base that was best there. Ratios are geometric means over the settings. On both sides, %v s
replace shorter waits. Upstreams send load hints and respond to probes wherever they can.

`, j.Hash, strings.Join(sources.Judged(), ", "), j.Ledger, draws, tuning, floor)
	if err != nil {
		return err
	}
	for _, g := range []*stats.Grid{j.ratios(), j.byRivals(), j.costs(), j.probes(), j.orders(), j.ranges(), j.tuned()} {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// table returns a table with a line for each family that has numbers.
func (j *Judgement) table(over, heads []string, numbers func(*Verdict) []float64) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{over, heads}}
	for i := range j.Verdicts {
		if n := numbers(&j.Verdicts[i]); n != nil {
			g.Rows = append(g.Rows, line(j.Verdicts[i].Name, n))
		}
	}
	return g
}

// summed adds two lines: the medians over the families, and how many families are above the limit.
func (j *Judgement) summed(g *stats.Grid, of func(*Verdict) []float64) *stats.Grid {
	above := []string{fmt.Sprintf("families above %v", limit)}
	for i := range of(&j.Verdicts[0]) {
		above = append(above, fmt.Sprint(len(j.above(of, i))))
	}
	g.Rows = append(g.Rows, line("median", j.medians(of)), above)
	return g
}

// heads returns the column titles of a table of the headlines.
func heads() []string {
	all := []string{"family"}
	for _, h := range headlines {
		all = append(all, h.name)
	}
	return all
}

func (j *Judgement) ratios() *stats.Grid {
	return j.summed(j.table([]string{"ours over best, low jobs", "", "", "", "", "", "", "", "all waits over the best:", "", "and over ours in one process,", "which is over the best in one:"},
		append(heads(), "as many", "one process", "(information)", "(rule)"), (*Verdict).ratios), (*Verdict).ratios)
}

func (j *Judgement) byRivals() *stats.Grid {
	return j.summed(j.table([]string{"all waits, ours over"}, append([]string{"family"}, names()...), (*Verdict).byRival), (*Verdict).byRival)
}

// names returns the names of the rivals.
func names() (all []string) {
	for _, b := range rivalKinds() {
		all = append(all, b.name)
	}
	return all
}

func line(name string, numbers []float64) []string {
	cells := []string{name}
	for _, n := range numbers {
		cells = append(cells, fmt.Sprintf("%.2f", n))
	}
	return cells
}

func (j *Judgement) medians(of func(*Verdict) []float64) (all []float64) {
	for column := range of(&j.Verdicts[0]) {
		var c []float64
		for i := range j.Verdicts {
			c = append(c, of(&j.Verdicts[i])[column])
		}
		all = append(all, median(c))
	}
	return all
}

func median(c []float64) float64 {
	slices.Sort(c)
	return (c[(len(c)-1)/2] + c[len(c)/2]) / 2
}

// above names the families whose ratio in a column exceeds the limit.
func (j *Judgement) above(of func(*Verdict) []float64, column int) (names []string) {
	for i := range j.Verdicts {
		if of(&j.Verdicts[i])[column] > limit {
			names = append(names, j.Verdicts[i].Name)
		}
	}
	return names
}

// costs returns the table of the cost of waits, averaged over the settings.
func (j *Judgement) costs() *stats.Grid {
	g := j.table(
		[]string{"fetches per 1,000 jobs:", "", "", "unanswered:", "", "low jobs, s, all waits:", "", "duration:", "", "until start:"},
		[]string{"family", "ours", "best", "ours", "best", "ours", "best", "ours", "best", "ours", "best"},
		func(v *Verdict) []float64 { return v.means(Fetches, Unanswered, Waits, Time, Low) })
	g.Rows = append(g.Rows, line("fetches, ours over it, median", j.medians(func(v *Verdict) []float64 {
		m := v.means(Fetches)
		return []float64{1, m[0] / m[1]}
	})))
	return g
}

// probes returns the table of the effect of probes on our policy, for the families whose upstreams can be probed.
func (j *Judgement) probes() *stats.Grid {
	over := func(v *Verdict) (numbers []float64) {
		for _, h := range headlines {
			numbers = append(numbers, v.ratio(h.figure, func(p *played) Outcome { return p.unprobed }))
		}
		return numbers
	}
	return j.summed(j.table([]string{"ours over ours without probes, low jobs", "", "", "", "", "", "", ""}, heads(), over), over)
}

// orders returns the table of our policy with upstreams that run short jobs first, compared with first come, first
// served. The last line is the geometric mean over the families whose low jobs wait more than 50 ms when first come,
// first served.
func (j *Judgement) orders() *stats.Grid {
	sums, waiting := make([]float64, 5), 0.0
	g := j.table(
		[]string{"ours, queues by expected length over those by arrival", "", "", "", "", "", "unanswered:", "", "by arrival, s:"},
		[]string{"family", "all low waits", "low time", "until start", "its p99", "high, until start", "ours", "by arrival", "low wait"},
		func(v *Verdict) (numbers []float64) {
			if v.Name == "arrival order" { // these upstreams always serve by arrival
				return nil
			}
			queued := func(figure int) float64 { return v.mean(func(p *played) float64 { return p.queued[figure] }) }
			waits := queued(Low) > 0.05
			for n, figure := range []int{Waits, Time, Low, LowP99, High} {
				numbers = append(numbers, v.ratio(figure, func(p *played) Outcome { return p.queued }))
				if waits {
					sums[n] += math.Log(numbers[n])
				}
			}
			if waits {
				waiting++
			}
			return append(numbers, v.means(Unanswered)[0], queued(Unanswered), queued(Low))
		})
	for i := range sums {
		sums[i] = math.Exp(sums[i] / max(1, waiting))
	}
	g.Rows = append(g.Rows, line(fmt.Sprintf("mean of %v", waiting), sums))
	return g
}

func (j *Judgement) ranges() *stats.Grid {
	g := &stats.Grid{Left: 3, Heads: [][]string{{"family", "jobs arrive as", "hints", "load", "fetch / work", "cache", "upstreams", "cores", "sidecars", "jobs", "high"}}}
	for i := range j.Verdicts {
		f := &j.Verdicts[i].Family
		hints := map[bool]string{false: "no", true: "yes"}[f.Hints]
		cache := f.Cache.String()
		if f.Cache.Low >= 1 {
			cache = "all"
		}
		g.Rows = append(g.Rows, []string{f.Name, string(f.Pattern), hints, f.Load.String(), f.Fetch.String(), cache,
			f.Upstreams.String(), f.Cores.String(), f.Sidecars.String(), f.Jobs.String(), f.High.String()})
	}
	return g
}

// tuned returns a table with a line for each setting: the contender that was chosen for each rival, and the best rival.
// Its last line counts the chosen limits that are the largest of their grid.
func (j *Judgement) tuned() *stats.Grid {
	g := &stats.Grid{Left: 12, Heads: [][]string{append([]string{"family", "best"}, names()...)}}
	edges := make([]int, len(rivalKinds()))
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		for _, p := range v.played {
			row := []string{v.Name, ""}
			best := 0
			for n, b := range rivalKinds() {
				row = append(row, p.tuned[n].String())
				if p.sums[n] < p.sums[best] {
					best = n
				}
				if b.atEdge(p.tuned[n]) {
					edges[n]++
				}
			}
			row[1] = names()[best]
			g.Rows = append(g.Rows, row)
		}
	}
	row := []string{"at the end of the grid", ""}
	for _, n := range edges {
		row = append(row, fmt.Sprintf("%d of %d", n, draws*len(j.Verdicts)))
	}
	g.Rows = append(g.Rows, row)
	return g
}

// listed are the columns of a line in judgings.txt.
var listed = []string{"all waits", "duration", "p99", "high p99", "until start"}

// Line returns the line that sums up a judgement in judgings.txt.
func (j *Judgement) Line() string {
	var medians []string
	for i, m := range j.medians((*Verdict).ratios) {
		if i < len(headlines) && slices.Contains(listed, headlines[i].name) {
			medians = append(medians, fmt.Sprintf("%s %.2f", headlines[i].name, m))
		}
	}
	return fmt.Sprintf("%s: %d families; medians over the best of all rivals: %s; all waits above %v in: %s\n",
		j.Hash, len(j.Verdicts), strings.Join(medians, ", "), limit, cmp.Or(strings.Join(j.above((*Verdict).ratios, 0), ", "), "none"))
}

// Medians returns the medians of each column of judgings.txt, without the lines from before there were rivals in one
// process.
func Medians(list string) string {
	numbers := map[string][]float64{}
	judgings := 0
	for line := range strings.Lines(list) {
		if !strings.Contains(line, "of all rivals: ") {
			continue
		}
		judgings++
		for _, m := range regexp.MustCompile(`[:,] ([a-z0-9 ]+) ([0-9.]+)`).FindAllStringSubmatch(line, -1) {
			if n, err := strconv.ParseFloat(m[2], 64); err == nil {
				numbers[m[1]] = append(numbers[m[1]], n)
			}
		}
	}
	if judgings == 0 {
		return ""
	}
	var all []string
	for _, name := range listed {
		all = append(all, fmt.Sprintf("%s %.2f", name, median(numbers[name])))
	}
	return fmt.Sprintf("medians of the %d judgings of judgings.txt: %s\n", judgings, strings.Join(all, ", "))
}
