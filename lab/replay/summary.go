package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
)

// Summary is what was seen of a replay's jobs, in the order in which they ended.
type Summary struct{ jobs []Result }

// Add takes in a job that ended.
func (s *Summary) Add(one *Result) { s.jobs = append(s.jobs, *one) }

// Jobs is how many jobs have ended.
func (s *Summary) Jobs() int { return len(s.jobs) }

// WriteText shows the thesis's tables, and other counts. Times count from when a job was
// due: that is what its submitter would feel.
func (s *Summary) WriteText(w io.Writer) error {
	upstreams := s.upstreams()
	run := stats.NewRun(len(upstreams))
	for i := range s.jobs {
		if one := &s.jobs[i]; one.OK() && one.Job.Kind != trace.Prefetch { // nobody waits for a prefetch
			run.Add(sampleOf(one, upstreams))
		}
	}
	var tables stats.Tables
	tables.Add("replay", run)
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
	upstream, known := slices.BinarySearch(upstreams, r.Upstream)
	if !known {
		upstream = -1
	}
	wait := min(r.Late+max(0, r.Wait), r.LastByte)
	return stats.Sample{
		Priority: r.Job.Priority, Upstream: upstream,
		Wait: wait, Execution: r.LastByte - wait,
	}
}

// upstreams are those that sidecars named, in order.
func (s *Summary) upstreams() []string {
	named := map[string]bool{}
	for i := range s.jobs {
		named[s.jobs[i].Upstream] = true
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
		outcomes[one.ending()]++
		if one.Fetched {
			fetches++
		}
		late.Add(one.Late)
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
