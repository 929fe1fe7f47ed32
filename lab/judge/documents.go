package judge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/lab/sources"
	"example.org/pilotfish/lab/stats"
)

// Documents are the algorithms of the five documents, as they are there: nothing is tuned.
func Documents() []Contender {
	const limit = 100 / 16.0 // the thesis's 100 stalled joblets, before 16 cores
	return []Contender{
		{Policy: "baseline"}, {Policy: "random"}, {Policy: "dynamic", Limit: limit}, {Policy: "dynamic", Limit: limit, Overload: "dagor"},
		{Policy: "dynamic", Limit: limit, Overload: "adaptive"}, {Policy: "dynamic", Limit: limit, Overload: "breakwater"},
		{Policy: "plan"}, {Policy: "dynamic", Limit: limit, Hedged: true}, {Policy: "home-step"},
		{Policy: "round-robin"}, {Policy: "least-in-flight"}, {Policy: "master-slave"}, {Policy: "master-slave-ns"}, {Policy: "master-slave-nr"},
		{Policy: "stretch"}, {Policy: "reserve"},
	}
}

// PlayDocuments plays one setting of each family with expected and each algorithm, and writes the ratios of all waits.
func PlayDocuments(ctx context.Context, w io.Writer, hash string, families []Family) error {
	algorithms := Documents()
	ratios := make([][]float64, len(families))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range families {
		group.Go(func() (err error) {
			ratios[i], err = families[i].against(within, hash, algorithms)
			return err
		})
	}
	if err := group.Wait(); ctx.Err() != nil || err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if _, err := fmt.Fprintf(w, `sources: %s (%s)

All waits of low jobs with expected over those with each algorithm of the five documents, on one setting of each family of
make judge, with one seed: below 1, jobs wait less with expected. Nothing is tuned; dynamic has the thesis's 100 stalled joblets
for 16 cores.

`, hash, strings.Join(sources.Judged(), ", ")); err != nil {
		return err
	}
	g := &stats.Grid{Left: 1, Heads: [][]string{{"family"}}}
	for _, c := range algorithms {
		g.Heads[0] = append(g.Heads[0], c.short())
	}
	for i := range families {
		g.Rows = append(g.Rows, line(families[i].Name, ratios[i]))
	}
	var medians []float64
	for column := range algorithms {
		var all []float64
		for i := range families {
			all = append(all, ratios[i][column])
		}
		medians = append(medians, median(all))
	}
	g.Rows = append(g.Rows, line("median", medians))
	return g.WriteText(w)
}

// short names a contender in a table's head.
func (c Contender) short() string {
	switch {
	case c.Hedged:
		return "hedged dynamic"
	case c.Overload != "":
		return c.Overload
	}
	return c.Policy
}

// against plays expected and others on the first setting of a family.
func (f *Family) against(ctx context.Context, hash string, others []Contender) (ratios []float64, err error) {
	s := f.draw(Seed(hash, f.Name, 0))
	seed := Seed(hash, f.Name, 0, "documents")
	jobs, cache, err := s.Jobs(seed)
	if err != nil {
		return nil, err
	}
	waits := func(c Contender) float64 {
		o, fault := c.Play(ctx, s, slices.Clone(jobs), cache, seed)
		err = cmp.Or(err, fault)
		return math.Max(floor, o[Waits])
	}
	ours := waits(Contender{Policy: "expected"})
	for _, c := range others {
		ratios = append(ratios, ours/waits(c))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return ratios, nil
}
