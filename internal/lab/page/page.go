package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/figure"
	"example.org/pilotfish/internal/lab/results"
)

//go:embed page.html
var pageText string

// page is what the template shows.
type page struct {
	Title, Common, Text string
	Runs                []pageRun
	Sections            []section
	// Heat and Away are the colours of the strips, and Bands those of the modes.
	Heat  []string
	Away  string
	Bands []figure.Key
}

type pageRun struct{ Name, Overload, Policy, Own, Color string }

// writeHTML writes results as one page that needs no other file.
func writeHTML(w io.Writer, r *results.Set) error {
	var text strings.Builder
	if err := Text(&text, r); err != nil {
		return err
	}
	shared, own := settings(r)
	p := page{
		Title: r.Scenario, Common: strings.Join(shared, ", "), Text: text.String(), Sections: sections(r),
		Heat: figure.Heat(), Away: figure.Away(),
	}
	for i, run := range r.Runs {
		p.Runs = append(p.Runs, pageRun{run.Name, run.Overload, run.Policy, own[i], figure.Color(i)})
	}
	return p.write(w)
}

// write fills in the template.
func (p page) write(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		panic("BUG: the report's template does not parse: " + err.Error())
	}
	p.Bands = figure.BandKeys()
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

// Files writes the files that are wanted: the page to a file, and each figure to
// a file of its own in a folder, with the name SCENARIO-SECTION-TITLE.svg. An
// empty path writes nothing.
func Files(r *results.Set, page, figures string) error {
	if page != "" {
		if err := cli.WriteFile(page, func(w io.Writer) error { return writeHTML(w, r) }); err != nil {
			return err
		}
	}
	if figures != "" {
		var runs []figure.Key
		for i, run := range r.Runs {
			runs = append(runs, figure.Key{Name: run.Name, Color: figure.Color(i)})
		}
		return writeFigures(r.Scenario, sections(r), runs, figures)
	}
	return nil
}

func writeFigures(name string, sections []section, runs []figure.Key, dir string) error {
	written := map[string]bool{}
	for _, s := range sections {
		for _, f := range s.Figures {
			var legend []figure.Key
			switch {
			case s.Bars:
				legend = runs
			case s.Heat:
				legend = figure.HeatKeys()
			case s.Shaded:
				legend = figure.BandKeys()
			}
			path := filepath.Join(dir, fileName(name+" "+s.ID+" "+f.Title)+".svg")
			if written[path] {
				return fmt.Errorf("figures: two would be %s: give the runs names that differ by more than signs", path)
			}
			written[path] = true
			err := cli.WriteFile(path, func(w io.Writer) error {
				_, err := io.WriteString(w, figure.SVG(f.SVG).File(legend))
				return err
			})
			if err != nil {
				return fmt.Errorf("figures: %w", err)
			}
		}
	}
	return nil
}

// fileName is a title in lower case, with hyphens for what is no letter or digit.
func fileName(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}), "-")
}
