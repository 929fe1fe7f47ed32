package stats

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ReadRows reads a table in the form of testdata/reference/thesis-results.csv:
// run, priority, quantity, mean, median, p90, p95, p99, max. name is the
// file's, for errors.
func ReadRows(r io.Reader, name string) ([]Row, error) {
	t, err := readTable(r, name, []string{"run", "priority", "quantity", "mean", "median", "p90", "p95", "p99", "max"})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for t.next() {
		row := Row{Run: t.text(0), Priority: t.text(1), Quantity: Quantity(t.text(2))}
		if row.Priority != "high" && row.Priority != "low" {
			t.fail(1, "unknown priority %q: it is high or low", row.Priority)
		}
		if !slices.Contains(Quantities(), row.Quantity) {
			t.fail(2, "unknown quantity %q", row.Quantity)
		}
		for i, v := range []*float64{&row.Mean, &row.Median, &row.P90, &row.P95, &row.P99, &row.Max} {
			*v = t.number(3 + i)
		}
		rows = append(rows, row)
	}
	if t.err != nil {
		return nil, t.err
	}
	return rows, nil
}

// ReadVariances reads a table in the form of
// testdata/reference/thesis-wait-variance.csv: run, all, and a column for each
// upstream.
func ReadVariances(r io.Reader, name string) ([]VarianceRow, error) {
	t, err := readTable(r, name, []string{"run", "all"})
	if err != nil {
		return nil, err
	}
	var rows []VarianceRow
	for t.next() {
		row := VarianceRow{Run: t.text(0), All: t.number(1)}
		for i := 2; i < len(t.heads); i++ {
			row.Upstreams = append(row.Upstreams, t.number(i))
		}
		rows = append(rows, row)
	}
	if t.err != nil {
		return nil, t.err
	}
	return rows, nil
}

// table reads a CSV file line by line, and keeps the first error.
type table struct {
	name   string
	csv    *csv.Reader
	heads  []string
	fields []string
	err    error
}

// readTable reads the headings, which begin with those given.
func readTable(r io.Reader, name string, heads []string) (*table, error) {
	t := &table{name: name, csv: csv.NewReader(r)}
	var err error
	if t.heads, err = t.csv.Read(); err != nil {
		return nil, fmt.Errorf("%s: no headings: %w", name, err)
	}
	if len(t.heads) < len(heads) || !slices.Equal(t.heads[:len(heads)], heads) {
		return nil, fmt.Errorf("%s: the headings are not %s", name, strings.Join(heads, ", "))
	}
	return t, nil
}

// next reads a line; false is the end or an error.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	var err error
	if t.fields, err = t.csv.Read(); err == io.EOF {
		return false
	}
	if err != nil {
		t.err = fmt.Errorf("%s: %w", t.name, err)
	}
	return err == nil
}

func (t *table) text(field int) string { return t.fields[field] }

func (t *table) number(field int) float64 {
	v, err := strconv.ParseFloat(t.fields[field], 64)
	if err != nil || !(v >= 0 && v <= math.MaxFloat64) {
		t.fail(field, "%q is not a finite number of at least 0", t.fields[field])
	}
	return v
}

func (t *table) fail(field int, format string, args ...any) {
	if t.err == nil {
		line, _ := t.csv.FieldPos(field)
		t.err = fmt.Errorf("%s: line %d: field %s: %s", t.name, line, t.heads[field], fmt.Sprintf(format, args...))
	}
}
