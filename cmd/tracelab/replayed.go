package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/trace"
)

// replayed is what was seen of a replay's jobs, in the order in which they ended.
type replayed struct{ jobs []replay.Result }

func (r *replayed) add(one *replay.Result) { r.jobs = append(r.jobs, *one) }

// writeText shows the thesis's tables, and what else was counted. Each job that
// was done counts twice: from when it was due, which is what its submitter would
// feel, and from when it was sent, which leaves out by how much the replay itself
// was late.
func (r *replayed) writeText(w io.Writer) error {
	upstreams := r.upstreams()
	due, sent := stats.NewRun(len(upstreams)), stats.NewRun(len(upstreams))
	for i := range r.jobs {
		one := &r.jobs[i]
		if !one.OK() || one.Job.Kind == trace.Prefetch {
			continue // nobody waits for a prefetch
		}
		s := sampleOf(one, upstreams)
		due.Add(s)
		s.Wait -= one.Late()
		s.Wait = max(0, s.Wait) // rounding
		sent.Add(s)
	}
	var tables stats.Tables
	tables.Add("from due", due)
	tables.Add("from sent", sent)
	if err := tables.WriteText(w); err != nil {
		return err
	}
	g := r.counts()
	for i, u := range upstreams {
		g.rows = append(g.rows, []string{fmt.Sprintf("upstream %d", i), u})
	}
	var out strings.Builder
	g.write(&out)
	_, err := io.WriteString(w, out.String())
	return err
}

// sampleOf splits a job's time as far as it is known: what is not told to be a
// wait counts as execution.
func sampleOf(r *replay.Result, upstreams []string) stats.Sample {
	m := r.Job.Measured
	upstream, known := slices.BinarySearch(upstreams, m.Upstream)
	if !known {
		upstream = -1
	}
	wait := r.Late()
	if m.Wait != nil {
		wait += *m.Wait
	}
	wait = min(wait, *m.TTLB)
	return stats.Sample{
		Priority: r.Job.Priority, Upstream: upstream,
		Wait: wait, Execution: *m.TTLB - wait, Unloaded: r.Job.Work(),
	}
}

// upstreams are those that sidecars named, in order.
func (r *replayed) upstreams() []string {
	named := map[string]bool{}
	for i := range r.jobs {
		named[r.jobs[i].Job.Measured.Upstream] = true
	}
	delete(named, "")
	return slices.Sorted(maps.Keys(named))
}

// counts is how jobs ended, and by how much they were sent late.
func (r *replayed) counts() grid {
	outcomes := map[string]int{}
	fetches, late := 0, stats.NewDistribution()
	for i := range r.jobs {
		one := &r.jobs[i]
		word := one.Job.Measured.Outcome
		if one.Status != 0 && !one.OK() {
			word = fmt.Sprintf("%s, status %d", word, one.Status)
		}
		outcomes[word]++
		if one.Fetched {
			fetches++
		}
		late.Add(one.Late())
	}
	var ends [][]string
	for _, word := range slices.Sorted(maps.Keys(outcomes)) {
		ends = append(ends, []string{word, thousands(outcomes[word])})
	}
	return grid{left: 1, heads: [][]string{{"jobs", thousands(len(r.jobs))}}, rows: append(ends,
		[]string{"fetches per 1,000", fmt.Sprintf("%.1f", 1000*float64(fetches)/float64(len(r.jobs)))},
		[]string{"sent late, p99 (s)", fmt.Sprintf("%.3f", late.Quantile(0.99))},
		[]string{"sent late, max (s)", fmt.Sprintf("%.3f", late.Summary().Max)},
	)}
}

// writeCapture writes the trace with what was measured. Jobs that were never sent
// are the last ones, so that every line keeps its number.
func (r *replayed) writeCapture(w io.Writer) error {
	slices.SortFunc(r.jobs, func(a, b replay.Result) int { return cmp.Compare(a.Line, b.Line) })
	out := trace.NewWriter(w)
	for i := range r.jobs {
		if err := out.Write(&r.jobs[i].Job); err != nil {
			return err
		}
	}
	return out.Flush()
}
