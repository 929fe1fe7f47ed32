// Package figures writes results as a static HTML page that draws its JSON data with the admin page's library. It has
// the figures of the thesis (4 to 15), and N. J. Turner's timelines and plots of key figures.
package figures

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/pkg/selection"
)

// Page is the data of the figures. A negative number is unknown, and drawn as a gap.
type Page struct {
	Title string `json:"title"`
	Bars  []Bars `json:"bars"`
	Runs  []Run  `json:"runs"`
}

// Bars are groups of bars: one bar of each series in each group.
type Bars struct {
	Title  string   `json:"title"`
	Groups []string `json:"groups"`
	Series []Series `json:"series"`
}

// Series is one value for each group, or each instant.
type Series struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// Run is the timeline of one run or target, in seconds since its start.
type Run struct {
	Name string `json:"name"`
	Jobs Jobs   `json:"jobs"`
	// Levels are the overload levels of each upstream at Instants: 1 admits all jobs, 0 none.
	Instants []float64 `json:"instants"`
	Levels   []Series  `json:"levels"`
}

//go:embed page.html
var page string

//go:embed page.js
var program string

// WriteHTML writes the page. It needs no other file.
func (p *Page) WriteHTML(w io.Writer) error {
	for i := range p.Runs {
		p.Runs[i].Jobs.describe()
	}
	data, err := json.Marshal(p) // it escapes what would end the script
	if err != nil {
		return err
	}
	script, style := admin.UPlot()
	return template.Must(template.New("").Parse(page)).Execute(w, map[string]any{
		"Title": p.Title, "Data": template.JS(data), "Script": template.JS(string(script) + "\n" + program), "Style": template.CSS(style),
	})
}

// Unknown returns n unknown values.
func Unknown(n int) []float64 { return slices.Repeat([]float64{-1}, n) }

// Quantities returns the thesis's figures 4 to 9 and 11 to 13: means by priority, and percentiles for each priority.
func Quantities(names []string, runs []stats.Run) (all []Bars) {
	priorities := []selection.Priority{selection.High, selection.Low}
	numbers := []struct {
		quantity stats.Quantity
		title    string
		mean     int // number of the thesis's figure of means; its percentiles are the next two figures
	}{{stats.Duration, "duration, s", 4}, {stats.Wait, "wait, s", 7}, {stats.Slowdown, "slowdown", 11}}
	for _, q := range numbers {
		bars := Bars{Title: fmt.Sprintf("Mean %s (thesis, figure %d)", q.title, q.mean), Groups: names}
		for _, p := range priorities {
			means := Unknown(len(runs))
			for i := range runs {
				if s := runs[i].Summary(p, q.quantity); s.Count > 0 {
					means[i] = s.Mean
				}
			}
			bars.Series = append(bars.Series, Series{p.String(), means})
		}
		all = append(all, bars)
		for n, p := range priorities {
			bars := Bars{Title: fmt.Sprintf("Percentiles of %s, %s jobs (thesis, figure %d)", q.title, p, q.mean+1+n), Groups: names}
			for column, name := range stats.Columns()[1:5] {
				values := Unknown(len(runs))
				for i := range runs {
					if s := runs[i].Summary(p, q.quantity); s.Count > 0 {
						values[i] = s.Numbers()[1+column]
					}
				}
				bars.Series = append(bars.Series, Series{name, values})
			}
			all = append(all, bars)
		}
	}
	return all
}
