package judge

import (
	"context"
	"fmt"
	"io"
	"strings"

	"example.org/pilotfish/lab/sources"
	"example.org/pilotfish/lab/stats"
)

// documents are the algorithms of the five documents, as they are there: nothing is tuned.
func documents() []Contender {
	const limit = 100 / 16.0 // the thesis's 100 stalled joblets, for 16 cores
	return []Contender{
		{Policy: "baseline"}, {Policy: "random"}, {Policy: "dynamic", Limit: limit}, {Policy: "dynamic", Limit: limit, Overload: "dagor"},
		{Policy: "dynamic", Limit: limit, Overload: "adaptive"}, {Policy: "dynamic", Limit: limit, Overload: "breakwater"},
		{Policy: "plan"}, {Policy: "dynamic", Limit: limit, Overload: "threshold", Hedged: true}, {Policy: "home-step"},
		{Policy: "round-robin"}, {Policy: "least-in-flight"}, {Policy: "master-slave"}, {Policy: "master-slave-ns"}, {Policy: "master-slave-nr"},
		{Policy: "stretch"}, {Policy: "reserve"},
	}
}

// PlayDocuments plays one setting of each family with expected and each algorithm, and writes the ratios of all waits.
func PlayDocuments(ctx context.Context, w io.Writer, hash string, families []Family) error {
	g := &stats.Grid{Left: 1, Heads: [][]string{{"family"}}}
	for _, c := range documents() {
		name := c.Policy
		if c.Hedged {
			name = "hedged " + name
		} else if c.Overload != "" {
			name = c.Overload
		}
		g.Heads[0] = append(g.Heads[0], name)
	}
	columns, medians := make([][]float64, len(documents())), make([]float64, len(documents()))
	for i := range families {
		ratios, err := families[i].against(ctx, hash, documents())
		if err != nil {
			return fmt.Errorf("%s: %w", families[i].Name, err)
		}
		g.Rows = append(g.Rows, line(families[i].Name, ratios))
		for n, ratio := range ratios {
			columns[n] = append(columns[n], ratio)
		}
	}
	for n := range columns {
		medians[n] = median(columns[n])
	}
	g.Rows = append(g.Rows, line("median", medians))
	_, err := fmt.Fprintf(w, `sources: %s (%s)

All waits of low jobs with expected over those with each algorithm of the five documents, on one setting of each family of
make judge, with one seed: below 1, jobs wait less with expected. Nothing is tuned; dynamic has the thesis's 100 stalled joblets
for 16 cores.

`, hash, strings.Join(sources.Judged(), ", "))
	if err != nil {
		return err
	}
	return g.WriteText(w)
}

// against plays expected and others on the first setting of a family.
func (f *Family) against(ctx context.Context, hash string, others []Contender) (ratios []float64, err error) {
	s := f.draw(Seed(hash, f.Name, 0))
	seed := Seed(hash, f.Name, 0, "documents")
	jobs, cache, err := s.Jobs(seed)
	ours := 0.0
	for i, c := range append([]Contender{{Policy: "expected"}}, others...) {
		if err != nil {
			return nil, err
		}
		var o Outcome
		if o, err = c.Play(ctx, s, jobs, cache, seed); i == 0 {
			ours = max(floor, o[Waits])
			continue
		}
		ratios = append(ratios, ours/max(floor, o[Waits]))
	}
	return ratios, err
}
