package scenario

import (
	"cmp"
	"encoding/csv"
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
}

// read reads NAME-results.csv and NAME-wait-variance.csv, the thesis's tables 4, 5 and 7, and 6.
func (p *published) read(name string) error {
	p.summaries, p.variances = map[[3]string]stats.Summary{}, map[string][]float64{}
	err := rows(name+"-results.csv", 3, func(head []string, numbers []float64) error {
		if len(numbers) != 6 {
			return fmt.Errorf("%d numbers are not those of a summary", len(numbers))
		}
		p.summaries[[3]string(head)] = stats.Summary{
			Mean: numbers[0], Median: numbers[1], P90: numbers[2], P95: numbers[3], P99: numbers[4], Max: numbers[5],
		}
		return nil
	})
	if err != nil {
		return err
	}
	return rows(name+"-wait-variance.csv", 1, func(head []string, numbers []float64) error {
		slices.Sort(numbers[1:])
		p.variances[head[0]] = numbers
		return nil
	})
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
