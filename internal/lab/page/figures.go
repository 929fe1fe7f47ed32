package page

import (
	"fmt"
	"html/template"
	"slices"

	"example.org/pilotfish/internal/lab/figure"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

// section is the figures that show one thing.
type section struct {
	ID, Title, Text string
	Heat            bool // the figures are strips, which need the key to their colours
	Bars            bool // the figures tell the runs apart by colour alone
	Shaded          bool // the figures are shaded by modes
	Figures         []titled
}

type titled struct {
	Title string
	SVG   template.HTML
}

func (s *section) add(title string, svg figure.SVG) {
	s.Figures = append(s.Figures, titled{title, template.HTML(svg)}) // package figure escapes the names
}

// sections are the page's figures, in order. Sections without a figure are left out.
func sections(r *results.Set) []section {
	all := []section{
		percentiles(r, "duration", "Duration", stats.Duration, 4, "From a job's arrival to its end."),
		percentiles(r, "wait", "Wait", stats.Wait, 7, "From a job's arrival at the sidecar to the start of its execution at the upstream."),
		percentiles(r, "first-byte", "Time to first byte", stats.FirstByte, 0, "From a job's arrival to the first byte of its answer, of jobs that had one."),
		variance(r), percentiles(r, "slowdown", "Slowdown", stats.Slowdown, 11, "The share of a job's time that it waited."),
		availability(r), level(r), closeups(r), imbalance(r),
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.Figures) == 0 })
}

// end is when the longest run ends, in seconds, at least 1.
func end(r *results.Set) float64 {
	end := 1.0
	for _, run := range r.Runs {
		end = max(end, run.History.End)
	}
	return end
}

// percentiles draws a quantity as bars, in three figures: the means of both priorities,
// the percentiles of low jobs, and those of high jobs. number is that of the first one in
// the thesis, or 0 if the thesis has none.
func percentiles(r *results.Set, id, title string, q stats.Quantity, number int, text string) section {
	s := section{ID: id, Title: title, Bars: true, Text: text + " Black lines are the reference."}
	draw := figure.Bars
	if q == stats.Slowdown {
		draw = figure.Shares
	} else {
		s.Text += " A stub at the bottom is 0."
	}
	means := make([]figure.Bar, len(r.Runs))
	var figures []titled
	for n, priority := range []string{"low", "high"} {
		var bars []figure.Bar
		shown := false
		for i := range r.Runs {
			ours, theirs := summaries(r, &r.Runs[i], q, priority)
			var bar figure.Bar
			if ours != nil {
				shown = true
				bar.Values = columns(*ours)
				means[i].Values = append(means[i].Values, ours.Mean)
				means[i].Marks = append(means[i].Marks, 0)
			}
			if theirs != nil {
				bar.Marks = columns(*theirs)
				means[i].Marks[len(means[i].Marks)-1] = theirs.Mean
			}
			bars = append(bars, bar)
		}
		if shown {
			figures = append(figures, titled{
				priority + " jobs" + inThesis(number, 2-n),
				template.HTML(draw(fmt.Sprintf("%s of %s jobs by run and percentile", title, priority),
					[]string{"mean", "median", "p90", "p95", "p99", "max"}, bars)),
			})
		}
	}
	if len(figures) == 2 {
		s.add("means"+inThesis(number, 0), draw("Mean "+id+" by run and priority", []string{"low", "high"}, means))
	}
	s.Figures = append(s.Figures, figures...)
	return s
}

// inThesis names the figure of the thesis that comes after others behind the first one;
// a first one of 0 is none.
func inThesis(first, after int) string {
	if first == 0 {
		return ""
	}
	return fmt.Sprintf(" (figure %d)", first+after)
}

// summaries are a run's numbers of a quantity for jobs of a priority, and the published
// ones; nil where there are none.
func summaries(r *results.Set, run *results.Run, q stats.Quantity, priority string) (ours, theirs *stats.Summary) {
	for n := range run.Rows {
		row := &run.Rows[n]
		if row.Quantity != q || row.Priority != priority {
			continue
		}
		ours = &row.Summary
		if published, ok := published(r, run, row); ok {
			theirs = &published.Summary
		}
	}
	return ours, theirs
}

func columns(s stats.Summary) []float64 {
	return []float64{s.Mean, s.Median, s.P90, s.P95, s.P99, s.Max}
}

// variance is the thesis's figure 10.
func variance(r *results.Set) section {
	s := section{ID: "variance", Title: "Variance of the wait of low jobs (figure 10)", Text: "A circle is the jobs of one upstream, the diamond all of them, the black line the reference for all. Circles far apart are upstreams that treat their jobs differently."}
	var dots []figure.Dot
	for _, run := range r.Runs {
		d := figure.Dot{Name: run.Name, Values: run.Variance.Upstreams, All: run.Variance.All}
		for _, v := range r.Reference.Variances {
			if v.Run == run.Reference {
				d.Mark = v.All
			}
		}
		dots = append(dots, d)
	}
	s.add("", figure.Dots("Variance of the wait of low jobs, by run and upstream", "s²", dots))
	return s
}

// availability is the thesis's figure 14, for every run.
func availability(r *results.Set) section {
	s := section{ID: "availability", Title: "Availability (figure 14)", Heat: true, Text: "The share of time that an upstream has more stalled joblets than the limit, a row each, over time. Runs in which none ever has, nor is away, are left out."}
	for _, run := range r.Runs {
		h := &run.History
		if len(h.Away) == 0 && !slices.ContainsFunc(h.Overloaded, func(row []float64) bool { return slices.Max(append(row, 0)) > 0 }) {
			continue
		}
		s.add(run.Name, figure.Strip("Time overloaded, by upstream, in run "+run.Name, h.Stretch, end(r), h.Overloaded, h.Away))
	}
	return s
}

// level is the thesis's figure 15, for every run in which one ever fell.
func level(r *results.Set) section {
	s := section{ID: "level", Title: "Overload level (figure 15)", Heat: true, Text: "How much an upstream refuses, as the first sidecar sees it: from nothing, at level 1, to everything, at level 0. Runs in which nothing is ever refused are left out."}
	for _, run := range r.Runs {
		h := &run.History
		if len(h.Level) == 0 {
			continue
		}
		refused := make([][]float64, len(h.Level))
		for i, levels := range h.Level {
			for _, l := range levels {
				refused[i] = append(refused[i], 1-l)
			}
		}
		s.add(run.Name, figure.Strip("Share refused, by upstream, in run "+run.Name, h.Stretch, end(r), refused, h.Away))
	}
	return s
}

// closeups is the thesis's figure 15, for every run in which a level ever moved.
func closeups(r *results.Set) section {
	s := section{ID: "closeup", Title: "Overload level, close up (figure 15)", Text: "The time in which levels move most, for the upstreams whose levels move most: the upper line of each is level 1, at which it takes every job, the lower one level 0."}
	for _, run := range r.Runs {
		c := run.History.Closeup
		if c == nil {
			continue
		}
		var names []string
		for _, i := range c.Upstreams {
			names = append(names, fmt.Sprintf("upstream %d", i))
		}
		s.add(fmt.Sprintf("%s, from %s on", run.Name, stats.Span(c.From)),
			figure.Lines("Overload level by upstream, close up, in run "+run.Name, c.Step, names, c.Level))
	}
	return s
}

// imbalance shows all runs on one scale.
func imbalance(r *results.Set) section {
	s := section{ID: "imbalance", Title: "Backlog imbalance", Text: "The mean distance of an upstream's stalled joblets from the mean of all upstreams, over time; the same square-root scale for all runs."}
	top := 0.0
	for _, run := range r.Runs {
		if d := run.History.Distance; len(d) > 0 {
			top = max(top, slices.Max(d))
		}
	}
	for i, run := range r.Runs {
		s.add(run.Name, figure.Area("Backlog imbalance in run "+run.Name, run.History.Stretch, end(r), run.History.Distance, top, i))
	}
	return s
}
