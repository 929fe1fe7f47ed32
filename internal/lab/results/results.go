// Package results is what tracelab simulate saves and tracelab report shows:
// the numbers of every run of a scenario.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"example.org/pilotfish/internal/lab/stats"
)

// format is the version of the file's form.
const format = 1

// Set is the results of a scenario.
type Set struct {
	// Format is the version of this form.
	Format   int    `json:"format"`
	Scenario string `json:"scenario"`
	// Reference is published results, to show beside ours.
	Reference stats.Tables `json:"reference"`
	Runs      []Run        `json:"runs"`
}

// Run is the results of one run: of all its trials together, and of each.
type Run struct {
	Name     string `json:"name"`
	Overload string `json:"overload"`
	Policy   string `json:"policy"`
	// Sidecars is how many share the jobs. Each knows its own jobs at once, and
	// those of the others from reports.
	Sidecars int `json:"sidecars"`
	// Settings describe the rest of the set-up for people.
	Settings []string `json:"settings"`
	// Against names the run to compare with, Reference the published row to
	// show beside this run.
	Against   string `json:"against"`
	Reference string `json:"reference"`

	// Rows and Variance are over the jobs of all trials.
	Rows     []stats.Row       `json:"rows"`
	Variance stats.VarianceRow `json:"wait_variance"`
	// Apart is the same of the first crowd's project and of all others, where the
	// scenario asks for it.
	Apart []stats.Row `json:"apart,omitempty"`
	// Counts are the means over the trials.
	Counts Counts `json:"counts"`
	// History is that of the first trial.
	History History `json:"history"`
	Trials  []Trial `json:"trials"`
}

// Trial is one run with one seed. Runs are compared seed by seed.
type Trial struct {
	Seed   uint64      `json:"seed"`
	Rows   []stats.Row `json:"rows"`
	Counts Counts      `json:"counts"`
}

// History is how a trial went over time: means over equal stretches of time.
type History struct {
	// Stretch is the length of one stretch, End when the last one ends, both in
	// seconds.
	Stretch float64 `json:"stretch_s"`
	End     float64 `json:"end_s"`
	// Overloaded, Away and Level have a row per upstream. Away and Level are
	// absent when they never change.
	Overloaded [][]float64 `json:"overloaded"`
	Away       [][]float64 `json:"away,omitempty"`
	Level      [][]float64 `json:"level,omitempty"`
	// Distance is the mean distance of an upstream's backlog from the mean
	// backlog, in joblets. Backlog is the mean number of stalled joblets of an
	// upstream, Queued the number of jobs that wait in all sidecars.
	Distance []float64 `json:"backlog_distance"`
	Backlog  []float64 `json:"backlog"`
	Queued   []float64 `json:"queued"`
	Closeup  *Closeup  `json:"closeup,omitempty"`
}

// Closeup is the time in which the overload levels moved most, in full detail:
// the thesis's figure 15.
type Closeup struct {
	// From is when it begins, Step the time between two levels, in seconds.
	From float64 `json:"from_s"`
	Step float64 `json:"step_s"`
	// Upstreams are those whose levels moved most, with a row of levels each.
	Upstreams []int       `json:"upstreams"`
	Level     [][]float64 `json:"level"`
}

// The two kinds of jobs in Run.Apart, in place of priorities.
const (
	Crowd  = "crowd"
	Others = "others"
)

// New returns an empty set.
func New(scenario string) Set { return Set{Format: format, Scenario: scenario} }

// Run finds a run by its name; nil if there is none.
func (s *Set) Run(name string) *Run {
	at := slices.IndexFunc(s.Runs, func(run Run) bool { return run.Name == name })
	if at < 0 {
		return nil
	}
	return &s.Runs[at]
}

// trial finds a trial by its seed; nil if there is none.
func (r *Run) trial(seed uint64) *Trial {
	at := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Seed == seed })
	if at < 0 {
		return nil
	}
	return &r.Trials[at]
}

// Summary is a trial's row of a quantity for jobs of a priority; all is 0 where there is
// no such job.
func (t *Trial) Summary(q stats.Quantity, priority string) stats.Summary {
	for i := range t.Rows {
		if t.Rows[i].Quantity == q && t.Rows[i].Priority == priority {
			return t.Rows[i].Summary
		}
	}
	return stats.Summary{}
}

// Pairs returns one number of each trial that two runs have in common: those of base and
// those of other, in the order of other's trials.
func Pairs(base, other *Run, of func(*Trial) float64) (bases, others []float64) {
	for i := range other.Trials {
		t := &other.Trials[i]
		if pair := base.trial(t.Seed); pair != nil {
			bases, others = append(bases, of(pair)), append(others, of(t))
		}
	}
	return bases, others
}

// Write saves the set as JSON.
func (s *Set) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(s)
}

// maxBytes bounds what Read reads.
const maxBytes = 1 << 30

// Read reads what Write has written, up to 1 GiB; name is the file's, for errors.
// A set that could not be shown is refused.
func Read(from io.Reader, name string) (Set, error) {
	dec := json.NewDecoder(io.LimitReader(from, maxBytes))
	dec.DisallowUnknownFields()
	var s Set
	if err := dec.Decode(&s); err != nil {
		return Set{}, fmt.Errorf("%s: not the results of tracelab simulate: %w", name, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Set{}, fmt.Errorf("%s: something follows the results", name)
	}
	switch {
	case s.Format != format:
		return Set{}, fmt.Errorf("%s: format: %d is not known, only %d is", name, s.Format, format)
	case len(s.Runs) == 0:
		return Set{}, fmt.Errorf("%s: runs: there is none", name)
	}
	for i, run := range s.Runs {
		if err := run.check(); err != nil {
			return Set{}, fmt.Errorf("%s: runs[%d]: %w", name, i, err)
		}
	}
	return s, nil
}

// check refuses what could not be drawn.
func (r *Run) check() error {
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
