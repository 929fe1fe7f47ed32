package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"example.org/pilotfish/internal/lab/stats"
)

// results is what simulate saves and report shows.
type results struct {
	// Format is the version of this form, 1.
	Format   int    `json:"format"`
	Scenario string `json:"scenario"`
	// Reference is published results beside ours.
	Reference stats.Tables `json:"reference"`
	Runs      []runResult  `json:"runs"`
}

// runResult is what came of one run.
type runResult struct {
	Name     string `json:"name"`
	Overload string `json:"overload"`
	Policy   string `json:"policy"`
	// Settings say the rest, for people.
	Settings []string `json:"settings"`
	// Against names the run to compare with, Reference the row beside.
	Against   string `json:"against"`
	Reference string `json:"reference"`

	// Over the jobs of all trials.
	Rows     []stats.Row       `json:"rows"`
	Variance stats.VarianceRow `json:"wait_variance"`
	// Counts are the means of the trials.
	Counts counts `json:"counts"`
	// History is that of the first trial.
	History history       `json:"history"`
	Trials  []trialResult `json:"trials"`
}

// trialResult is one trial, for paired comparisons.
type trialResult struct {
	Seed   uint64      `json:"seed"`
	Rows   []stats.Row `json:"rows"`
	Counts counts      `json:"counts"`
}

// gather makes the results of the trials that were played; a run without any
// is left out. It uses the trials up.
func gather(s *scenario, runs []*spec, played []*trial) results {
	res := results{Format: 1, Scenario: s.Name}
	for _, r := range runs {
		var of []*trial
		for _, t := range played {
			if t.spec == r {
				of = append(of, t)
			}
		}
		if len(of) > 0 {
			res.Runs = append(res.Runs, gatherRun(r, of))
		}
	}
	return res
}

func gatherRun(r *spec, trials []*trial) runResult {
	res := runResult{
		Name: r.Name, Overload: r.Overload, Policy: r.Policy, Against: r.Against, Reference: r.Reference,
		Settings: r.describe(trials[0].end), History: trials[0].times.history(),
	}
	var all []counts
	for _, t := range trials {
		res.Trials = append(res.Trials, trialResult{Seed: t.seed, Rows: t.stats.Rows(r.Name), Counts: t.counts})
		all = append(all, t.counts)
	}
	res.Counts = mean(all)
	merged := trials[0].stats
	for _, t := range trials[1:] {
		merged.Merge(t.stats)
	}
	res.Rows, res.Variance = merged.Rows(r.Name), merged.WaitVariance(r.Name)
	return res
}

// run is the run of a name; nil if there is none.
func (r *results) run(name string) *runResult {
	at := slices.IndexFunc(r.Runs, func(run runResult) bool { return run.Name == name })
	if at < 0 {
		return nil
	}
	return &r.Runs[at]
}

// trial is the trial of a seed; nil if there is none.
func (r *runResult) trial(seed uint64) *trialResult {
	at := slices.IndexFunc(r.Trials, func(t trialResult) bool { return t.Seed == seed })
	if at < 0 {
		return nil
	}
	return &r.Trials[at]
}

func (r *results) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// maxResults bounds a file of results.
const maxResults = 1 << 30

func readResults(path string) (results, error) {
	f, err := os.Open(path)
	if err != nil {
		return results{}, err
	}
	defer f.Close()
	return decodeResults(path, io.LimitReader(f, maxResults))
}

func decodeResults(path string, from io.Reader) (results, error) {
	dec := json.NewDecoder(from)
	dec.DisallowUnknownFields()
	var r results
	if err := dec.Decode(&r); err != nil {
		return results{}, fmt.Errorf("%s: not the results of tracelab simulate: %w", path, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return results{}, fmt.Errorf("%s: something follows the results", path)
	}
	switch {
	case r.Format != 1:
		return results{}, fmt.Errorf("%s: format: %d is not known, only 1 is", path, r.Format)
	case len(r.Runs) == 0:
		return results{}, fmt.Errorf("%s: runs: there is none", path)
	}
	for i, run := range r.Runs {
		if err := run.check(); err != nil {
			return results{}, fmt.Errorf("%s: runs[%d]: %w", path, i, err)
		}
	}
	return r, nil
}

// check refuses what could not be drawn.
func (r *runResult) check() error {
	if len(r.Trials) == 0 {
		return errors.New("trials: there is none")
	}
	n := len(r.Variance.Upstreams)
	h := &r.History
	for _, of := range []struct {
		name string
		rows [][]float64
	}{{"overloaded", h.Overloaded}, {"away", h.Away}, {"level", h.Level}} {
		if len(of.rows) != n && len(of.rows) != 0 {
			return fmt.Errorf("history.%s: %d upstreams, but %d in wait_variance", of.name, len(of.rows), n)
		}
	}
	if !(h.Stretch > 0) {
		return fmt.Errorf("history.stretch_s: %v must be positive", h.Stretch)
	}
	if c := h.Closeup; c != nil && (len(c.Level) != len(c.Upstreams) || !(c.Step > 0)) {
		return fmt.Errorf("history.closeup: %d rows of %d upstreams every %v s do not fit together", len(c.Level), len(c.Upstreams), c.Step)
	}
	return nil
}

// merge puts the runs of several files together; a later run of the same name
// gets the file's scenario before its own.
func merge(all []results) results {
	merged := all[0]
	for _, r := range all[1:] {
		merged.Scenario += ", " + r.Scenario
		merged.Reference.Rows = append(merged.Reference.Rows, r.Reference.Rows...)
		merged.Reference.Variances = append(merged.Reference.Variances, r.Reference.Variances...)
		taken := func(name string) bool { return merged.run(name) != nil }
		rename := map[string]string{}
		for _, run := range r.Runs {
			if taken(run.Name) {
				rename[run.Name] = unused(r.Scenario+": "+run.Name, taken)
			}
		}
		for _, run := range r.Runs {
			run.rename(rename)
			merged.Runs = append(merged.Runs, run)
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

func (r *runResult) rename(names map[string]string) {
	if name, ok := names[r.Against]; ok {
		r.Against = name
	}
	name, ok := names[r.Name]
	if !ok {
		return
	}
	r.Name = name
	r.Variance.Run = name
	r.Rows = renamed(r.Rows, name)
	r.Trials = slices.Clone(r.Trials)
	for i := range r.Trials {
		r.Trials[i].Rows = renamed(r.Trials[i].Rows, name)
	}
}

// renamed is a copy: the rows may be shown under their own name too.
func renamed(rows []stats.Row, run string) []stats.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Run = run
	}
	return rows
}
