package scenario

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"example.org/pilotfish/lab/stats"
)

// published has published numbers. results are the values of stats.Columns by run, priority and quantity. variances
// are by run: the variance of the waits of all low jobs, then of those at each server. slopes are the slopes of the times
// to first byte by run.
type published struct {
	results, variances, slopes map[string][]float64
}

// of returns the name of a row of results.
func of(run, priority string, q stats.Quantity) string {
	return run + ", " + priority + ", " + string(q)
}

// read reads NAME-results.csv, NAME-wait-variance.csv and NAME-slopes.csv. At least one of them must exist.
func (p *published) read(name string) error {
	absent := 0
	for _, t := range []struct {
		to      *map[string][]float64
		file    string
		words   int // columns of text
		numbers int // minimum of the following columns of numbers
	}{{&p.results, "-results.csv", 3, len(stats.Columns())}, {&p.variances, "-wait-variance.csv", 1, 2}, {&p.slopes, "-slopes.csv", 1, 1}} {
		err := table(name+t.file, t.words, t.numbers, t.to)
		if errors.Is(err, fs.ErrNotExist) && absent < 2 {
			absent++
		} else if err != nil {
			return err
		}
	}
	return nil
}

// table reads a CSV file with a header, and rows of words and numbers.
func table(path string, words, numbers int, to *map[string][]float64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll() // all have as many cells as the first
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	*to = map[string][]float64{}
	for i, row := range rows {
		if len(row) < words+numbers {
			return fmt.Errorf("%s:%d: there are fewer than %d words and %d numbers", path, i+1, words, numbers)
		}
		if i == 0 {
			continue
		}
		var all []float64
		for _, cell := range row[words:] {
			n, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			all = append(all, n)
		}
		(*to)[strings.Join(row[:words], ", ")] = all
	}
	return nil
}
