package scenario

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"example.org/pilotfish/lab/stats"
)

// published is results that somebody published, by run, and then by priority and quantity.
type published struct {
	summaries map[[3]string]stats.Summary
	// variances are of the waits of low jobs: of all, then of each server.
	variances map[string][]float64
	// slopes are of the times to the first byte, in seconds for each job.
	slopes map[string]float64
}

// read reads NAME-results.csv, NAME-wait-variance.csv and NAME-slopes.csv, of which there is one at least.
func (p *published) read(name string) error {
	p.summaries, p.variances, p.slopes = map[[3]string]stats.Summary{}, map[string][]float64{}, map[string]float64{}
	absent := 0
	for _, file := range []struct {
		name    string
		words   int
		numbers int
		take    func(head []string, numbers []float64)
	}{
		{"-results.csv", 3, 6, func(head []string, n []float64) {
			p.summaries[[3]string(head)] = stats.Summary{Mean: n[0], Median: n[1], P90: n[2], P95: n[3], P99: n[4], Max: n[5]}
		}},
		{"-wait-variance.csv", 1, 0, func(head []string, n []float64) {
			slices.Sort(n[1:])
			p.variances[head[0]] = n
		}},
		{"-slopes.csv", 1, 1, func(head []string, n []float64) { p.slopes[head[0]] = n[0] }},
	} {
		err := rows(name+file.name, file.words, func(head []string, numbers []float64) error {
			if len(numbers) == 0 || file.numbers > 0 && len(numbers) != file.numbers {
				return fmt.Errorf("there are %d numbers in a row", len(numbers))
			}
			file.take(head, numbers)
			return nil
		})
		if errors.Is(err, os.ErrNotExist) {
			absent++
			if absent < 3 {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows reads a file of rows that have so many words before their numbers, under a line of names.
func rows(path string, words int, take func(head []string, numbers []float64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	all, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for line, row := range all[min(1, len(all)):] {
		var numbers []float64
		for _, cell := range row[min(words, len(row)):] {
			n, fault := strconv.ParseFloat(cell, 64)
			numbers, err = append(numbers, n), cmp.Or(err, fault)
		}
		if err == nil {
			err = take(row[:min(words, len(row))], numbers)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, line+2, err)
		}
	}
	return nil
}
