package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pilotfish/cmd/tracelab/figure"
)

// writeFigures writes each figure of the report to a file of its own in dir:
// SCENARIO-SECTION.svg, where a section has several with what tells them apart.
func (r *results) writeFigures(dir string) error {
	var names []string
	for _, run := range r.Runs {
		names = append(names, run.Name)
	}
	for _, s := range r.sections() {
		for _, f := range s.Figures {
			name := r.Scenario + " " + s.ID
			if len(s.Figures) > 1 {
				name += " " + f.Title
			}
			var legend []string
			if s.Bars {
				legend = names
			}
			path := filepath.Join(dir, fileName(name)+".svg")
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

// isDirectory refuses what is none, before the runs rather than after them.
func isDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}
