package scenario

import (
	"fmt"
	"slices"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
)

// trend is the times to first byte over the jobs of a workload of bursts, for N. J. Turner's tables 1 to 4.
type trend struct {
	jobs []sim.Result // by number; the zero value if a job was not observed
}

// maxTrend bounds the number of jobs in a trend.
const maxTrend = 10_000

func newTrend(w *workload.Config) *trend {
	if w.Pattern != "bursts" || w.Len() > maxTrend {
		return nil
	}
	return &trend{jobs: make([]sim.Result, w.Len())}
}

func (t *trend) add(r *sim.Result) {
	if t != nil {
		t.jobs[r.Number-1] = *r
	}
}

// found is the figures of a trend: the slope of the times to first byte up to the first lost job, in seconds per job;
// the times to first byte of the first job and of the last one before a loss; the number of lost jobs and of batches of
// consecutive lost jobs; the times to first byte before and after the first batch; and the number of partial responses.
type found struct {
	slope, first, last, before, after float64
	lost, batches, partial            int
}

func (t *trend) find() (f found) {
	var x, y []float64
	wasLost := false
	for i := range t.jobs {
		r := &t.jobs[i]
		lost := r.Outcome != sim.Done
		if r.Completeness == intake.Partial {
			f.partial++
		}
		switch {
		case lost:
			f.lost++
			if !wasLost {
				f.batches++
			}
		case f.batches == 0:
			x, y = append(x, float64(i)), append(y, r.FirstByte.Seconds())
		case wasLost && f.after == 0:
			f.after = r.FirstByte.Seconds()
		}
		wasLost = lost
	}
	if len(y) > 0 {
		f.first, f.last = y[0], y[len(y)-1]
		f.slope = slope(x, y)
	}
	if f.batches > 0 {
		f.before = f.last
	}
	return f
}

// slope returns the slope of the least-squares line.
func slope(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, xx, xy float64
	for i := range x {
		sx, sy, xx, xy = sx+x[i], sy+y[i], xx+x[i]*x[i], xy+x[i]*y[i]
	}
	if of := n*xx - sx*sx; of > 0 {
		return (n*xy - sx*sy) / of
	}
	return 0
}

// trends returns the table of the runs with bursts, with the first seed, next to the published slopes.
func (r *Results) trends() *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{
		{"time to first byte, s", "slope", "reference", "of the", "of the last", "lost", "in", "partial", "before the", "after"},
		{"run", "per job", "", "first job", "before a loss", "jobs", "batches", "responses", "first batch", "it"},
	}}
	for i, run := range r.scenario.Runs {
		if len(r.trials[i]) == 0 || r.trials[i][0].trend == nil {
			continue
		}
		f := r.trials[i][0].trend.find()
		cells := []string{run.Name, fmt.Sprintf("%.3f", f.slope), "-"}
		if published, ok := r.scenario.published.slopes[run.Name]; ok {
			cells[2] = fmt.Sprintf("%.3f", published[0])
		}
		g.Rows = append(g.Rows, slices.Concat(cells, []string{number(f.first), number(f.last), fmt.Sprint(f.lost), fmt.Sprint(f.batches), fmt.Sprint(f.partial), number(f.before), number(f.after)}))
	}
	return g
}
