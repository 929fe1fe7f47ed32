package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/lab/figure"
)

// writeFigures writes each figure of the report to a file of its own in dir:
// SCENARIO-SECTION-TITLE.svg.
func (r *results) writeFigures(dir string) error {
	var runs []figure.Key
	for i, run := range r.Runs {
		runs = append(runs, figure.Key{Name: run.Name, Color: figure.Color(i)})
	}
	written := map[string]bool{}
	for _, s := range r.sections() {
		for _, f := range s.Figures {
			var legend []figure.Key
			switch {
			case s.Bars:
				legend = runs
			case s.Heat:
				legend = figure.HeatKeys()
			}
			path := filepath.Join(dir, fileName(r.Scenario+" "+s.ID+" "+f.Title)+".svg")
			if written[path] {
				return fmt.Errorf("figures: two would be %s: give the runs names that differ by more than signs", path)
			}
			written[path] = true
			err := create(path, func(w io.Writer) error {
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

// fileName is a title with a hyphen for all that is no letter or digit.
func fileName(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}), "-")
}

// checkDirectory refuses what is none, before the runs rather than after them.
func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}
