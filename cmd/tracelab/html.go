package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"example.org/pilotfish/internal/lab/figure"
)

//go:embed page.html
var pageText string

// page is what the report's template shows.
type page struct {
	Title, Common, Text string
	// Heat and Away are the colours of strips.
	Heat []template.CSS
	Away template.CSS
	Runs []pageRun

	Sections []section
}

type pageRun struct {
	Name, Overload, Policy, Own string
	Color                       template.CSS
}

// section is figures that say one thing.
type section struct {
	ID, Title, Text string
	Heat            bool // they need the key to the colours of strips
	Bars            bool // each run is known by its colour alone
	Figures         []titled
}

type titled struct {
	Title string
	SVG   template.HTML
}

// writeHTML writes the report as one file that needs no other.
func (r *results) writeHTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		panic("BUG: the report's template does not parse: " + err.Error())
	}
	var text strings.Builder
	if err := r.writeText(&text); err != nil {
		return err
	}
	all, own := r.settings()
	p := page{Title: r.Scenario, Common: strings.Join(all, ", "), Text: text.String(), Away: template.CSS(figure.Away())}
	for _, c := range figure.Heat() {
		p.Heat = append(p.Heat, template.CSS(c))
	}
	for i, run := range r.Runs {
		p.Runs = append(p.Runs, pageRun{
			Name: run.Name, Overload: run.Overload, Policy: run.Policy, Own: own[i], Color: template.CSS(figure.Color(i)),
		})
	}
	for _, s := range r.sections() {
		if len(s.Figures) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

func (s *section) add(title string, svg figure.SVG) {
	s.Figures = append(s.Figures, titled{title, template.HTML(svg)}) // drawn here, names escaped
}
