package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/trace"
)

// Summary is what was seen of a replay's jobs, in the order in which they ended.
type Summary struct{ jobs []Result }

// Add takes in a job that ended.
func (s *Summary) Add(one *Result) { s.jobs = append(s.jobs, *one) }

// Jobs is how many jobs have ended.
func (s *Summary) Jobs() int { return len(s.jobs) }

// WriteText shows the thesis's tables, and other counts. Each job that was done
// counts in two rows. The first counts from when the job was due: that is what
// its submitter would feel. The second counts from when it was sent: that leaves
// out by how much the replay itself was late.
func (s *Summary) WriteText(w io.Writer) error {
	upstreams := s.upstreams()
	due, sent := stats.NewRun(len(upstreams)), stats.NewRun(len(upstreams))
	for i := range s.jobs {
		one := &s.jobs[i]
		if !one.OK() || one.Job.Kind == trace.Prefetch {
			continue // nobody waits for a prefetch
		}
		sample := sampleOf(one, upstreams)
		due.Add(sample)
		sample.Wait = max(0, sample.Wait-one.Late()) // below 0 is a rounding error
		sent.Add(sample)
	}
	var tables stats.Tables
	tables.Add("from due", due)
	tables.Add("from sent", sent)
	if err := tables.WriteText(w); err != nil {
		return err
	}
	g := s.counts()
	for i, u := range upstreams {
		g.Rows = append(g.Rows, []string{fmt.Sprintf("upstream %d", i), u})
	}
	return g.WriteText(w)
}

// sampleOf splits a job's time into wait and execution. Time that nobody called
// a wait counts as execution.
func sampleOf(r *Result, upstreams []string) stats.Sample {
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
func (s *Summary) upstreams() []string {
	named := map[string]bool{}
	for i := range s.jobs {
		named[s.jobs[i].Job.Measured.Upstream] = true
	}
	delete(named, "")
	return slices.Sorted(maps.Keys(named))
}

// counts is how jobs ended, and by how much they were sent late.
func (s *Summary) counts() *stats.Grid {
	outcomes := map[string]int{}
	fetches, late := 0, stats.NewDistribution()
	for i := range s.jobs {
		one := &s.jobs[i]
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
	g := &stats.Grid{Left: 1, Heads: [][]string{{"jobs", stats.Thousands(len(s.jobs))}}}
	for _, word := range slices.Sorted(maps.Keys(outcomes)) {
		g.Rows = append(g.Rows, []string{word, stats.Thousands(outcomes[word])})
	}
	g.Rows = append(g.Rows,
		[]string{"fetches per 1,000", fmt.Sprintf("%.1f", 1000*float64(fetches)/float64(len(s.jobs)))},
		[]string{"sent late, p99 (s)", fmt.Sprintf("%.3f", late.Quantile(0.99))},
		[]string{"sent late, max (s)", fmt.Sprintf("%.3f", late.Summary().Max)})
	return g
}

// WriteCapture writes the trace with what was measured. Jobs that were never sent
// are the last ones of the trace, so every line keeps its number.
func (s *Summary) WriteCapture(w io.Writer) error {
	slices.SortFunc(s.jobs, func(a, b Result) int { return cmp.Compare(a.Line, b.Line) })
	out := trace.NewWriter(w)
	for i := range s.jobs {
		if err := out.Write(&s.jobs[i].Job); err != nil {
			return err
		}
	}
	return out.Flush()
}
