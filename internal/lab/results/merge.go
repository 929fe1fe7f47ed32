package results

import (
	"fmt"
	"slices"

	"example.org/pilotfish/internal/lab/stats"
)

// Merge puts several sets together. Where a later set has a run of the same
// name, that run is renamed: its scenario's name goes before its own.
func Merge(all []Set) Set {
	merged := all[0]
	for _, s := range all[1:] {
		merged.Scenario += ", " + s.Scenario
		merged.Reference.Rows = append(merged.Reference.Rows, s.Reference.Rows...)
		merged.Reference.Variances = append(merged.Reference.Variances, s.Reference.Variances...)
		taken := func(name string) bool { return merged.Run(name) != nil }
		names := map[string]string{}
		for _, run := range s.Runs {
			if taken(run.Name) {
				names[run.Name] = unused(s.Scenario+": "+run.Name, taken)
			}
		}
		for _, run := range s.Runs {
			merged.Runs = append(merged.Runs, run.renamed(names))
		}
	}
	return merged
}

func unused(name string, taken func(string) bool) string {
	for candidate, n := name, 2; ; n++ {
		if !taken(candidate) {
			return candidate
		}
		candidate = fmt.Sprintf("%s (%d)", name, n)
	}
}

// renamed is a copy of the run in which the names that are keys of names are
// replaced. The rows are copies too, as the original may be shown beside it.
func (r Run) renamed(names map[string]string) Run {
	if name, ok := names[r.Against]; ok {
		r.Against = name
	}
	name, ok := names[r.Name]
	if !ok {
		return r
	}
	rows := func(rows []stats.Row) []stats.Row {
		rows = slices.Clone(rows)
		for i := range rows {
			rows[i].Run = name
		}
		return rows
	}
	r.Name = name
	r.Variance.Run = name
	r.Rows, r.Apart = rows(r.Rows), rows(r.Apart)
	r.Trials = slices.Clone(r.Trials)
	for i := range r.Trials {
		r.Trials[i].Rows = rows(r.Trials[i].Rows)
	}
	return r
}
