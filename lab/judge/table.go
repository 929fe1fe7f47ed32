package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"example.org/pilotfish/lab/stats"
)

// limit is the ratio that no family should exceed.
const limit = 1.1

// WriteText writes the table of a judgement.
func (j *Judgement) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, `sources: %s (%s)

A number below 1 says that jobs wait less with pilotfish's policy, expected. The settings of a family are drawn from
its ranges, by seeds that the hash of the sources gives: %d settings, each judged on %d seeds. The contender that stands
for a base is chosen for each setting, on one more seed; "best" is the base that was best there. Ratios are geometric
means over the settings. Waits below 10 ms count as 10 ms. Upstreams send load hints wherever they can.

`, j.Hash, strings.Join(Judged(), ", "), draws, seeds)
	if err != nil {
		return err
	}
	for _, g := range []*stats.Grid{j.ratios(), j.costs(), j.orders(), j.ranges(), j.tuned()} {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// table has a line for each family: its numbers, if it has any.
func (j *Judgement) table(over, heads []string, numbers func(*Verdict) []float64) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{over, heads}}
	for i := range j.Verdicts {
		if n := numbers(&j.Verdicts[i]); n != nil {
			g.Rows = append(g.Rows, line(j.Verdicts[i].Name, n))
		}
	}
	return g
}

// ratios has the medians, too.
func (j *Judgement) ratios() *stats.Grid {
	g := j.table(
		[]string{"mean wait of low jobs, ours over", "", "", "", "", "over best:"},
		slices.Concat([]string{"family", "best"}, names(), []string{"low p99", "high wait", "high p99", "low time"}),
		(*Verdict).ratios,
	)
	above := []string{fmt.Sprintf("families above %v", limit)}
	for i := range j.medians((*Verdict).ratios) {
		above = append(above, fmt.Sprint(len(j.above(i))))
	}
	g.Rows = append(g.Rows, line("median", j.medians((*Verdict).ratios)), above)
	return g
}

// names are those of the bases.
func names() (all []string) {
	for _, b := range bases() {
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
		slices.Sort(c)
		all = append(all, (c[(len(c)-1)/2]+c[len(c)/2])/2)
	}
	return all
}

// above names the families whose ratio in a column exceeds the limit.
func (j *Judgement) above(column int) (names []string) {
	for i := range j.Verdicts {
		if j.Verdicts[i].ratios()[column] > limit {
			names = append(names, j.Verdicts[i].Name)
		}
	}
	return names
}

// costs is what the waits cost, in the mean over the settings.
func (j *Judgement) costs() *stats.Grid {
	g := j.table(
		[]string{"fetches per 1,000 jobs", "", "", "", "", "", "unanswered:", "", "mean low wait, s:"},
		slices.Concat([]string{"family", "ours", "best"}, names(), []string{"ours", "best", "ours", "best"}),
		func(v *Verdict) []float64 {
			return slices.Concat(v.means(Fetches), v.means(Unanswered)[:2], v.means(Low)[:2])
		})
	g.Rows = append(g.Rows, line("ours over it, median", j.medians(func(v *Verdict) []float64 {
		fetches := v.means(Fetches)
		for i, n := range fetches {
			fetches[i] = v.means(Fetches)[0] / n
		}
		return fetches
	})))
	return g
}

// orders is what the upstreams' order of jobs does for our policy, and its geometric mean over the families whose low jobs
// wait more than 50 ms by arrival.
func (j *Judgement) orders() *stats.Grid {
	sums, waiting := make([]float64, 5), 0.0
	g := j.table(
		[]string{"ours, queues by expected length over those by arrival", "", "", "", "", "", "unanswered:", "", "by arrival, s:"},
		[]string{"family", "low wait", "low p99", "high wait", "low time", "all low waits", "ours", "by arrival", "low wait"},
		func(v *Verdict) (numbers []float64) {
			if v.Name == "arrival order" { // these upstreams know no other
				return nil
			}
			queued := func(figure int) float64 { return v.mean(func(p *played) float64 { return p.queued[figure] }) }
			waits := queued(Low) > 0.05
			for n, figure := range []int{Low, LowP99, High, Time, Waits} {
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
		sums[i] = math.Exp(sums[i] / waiting)
	}
	g.Rows = append(g.Rows, line(fmt.Sprintf("mean of %v", waiting), sums))
	return g
}

func (j *Judgement) ranges() *stats.Grid {
	g := &stats.Grid{Left: 3, Heads: [][]string{{"family", "jobs come as", "hints", "load", "fetch / work", "cache", "upstreams", "cores", "sidecars", "jobs", "high"}}}
	for i := range j.Verdicts {
		f := &j.Verdicts[i].Family
		hints := map[bool]string{false: "no", true: "yes"}[f.Hints]
		g.Rows = append(g.Rows, []string{f.Name, string(f.Pattern), hints, f.Load.String(), f.Fetch.String(), f.Cache.String(),
			f.Upstreams.String(), f.Cores.String(), f.Sidecars.String(), f.Jobs.String(), f.High.String()})
	}
	return g
}

// tuned is a line for each setting: what stood for each base, and the best of them.
func (j *Judgement) tuned() *stats.Grid {
	g := &stats.Grid{Left: 6, Heads: [][]string{append([]string{"family", "best"}, names()...)}}
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		for _, p := range v.played {
			row := []string{v.Name, p.tuned[p.chosen].String()}
			for _, c := range p.tuned {
				row = append(row, c.String())
			}
			g.Rows = append(g.Rows, row)
		}
	}
	return g
}

// Line sums a judgement up in one line, for the list of all.
func (j *Judgement) Line() string {
	m := j.medians((*Verdict).ratios)
	above := cmp.Or(strings.Join(j.above(0), ", "), "none")
	last := len(m) - 1
	return fmt.Sprintf("%s: %d families; medians over best: low wait %.2f, low p99 %.2f, high wait %.2f, high p99 %.2f, low time %.2f; low wait above %v in: %s\n",
		j.Hash, len(j.Verdicts), m[0], m[last-3], m[last-2], m[last-1], m[last], limit, above)
}
