package trace

import (
	"math"
	"slices"
)

// The waits that logs do not tell are rebuilt. An upstream that runs so many jobs at one time, first come first
// served, begins a job when it comes, or when fewer than so many of those that came before are left.

const (
	// Runs shorter than shortest are not believed, and those shorter than alike are not told apart, in seconds.
	shortest, alike = 0.001, 0.01
	// doubt is the share of jobs that are served before their turn: high jobs of which the log does not say so.
	doubt = 0.1
)

// Estimate returns the jobs with what they cost, if an upstream, or all together where none is named, runs so many
// at one time; with 0, the number with which their runs are likeliest. Where no job was seen to
// miss, a fetch takes so many seconds, or as long as a job.
func (l *Logs) Estimate(cores int, fetch float64) (jobs []Job) {
	all, best := l.entries, math.Inf(-1)
	for n, waited := 1, true; cores == 0 && waited; n += max(1, n/12) {
		waited = serve(all, n)
		if fit := likelihood(all); fit > best+1e-3 { // the order of maps changes less
			best, l.Seen.Cores = fit, n
		}
	}
	l.Seen.Cores += cores
	serve(all, l.Seen.Cores)
	l.Seen.Wait, l.Seen.Unlike = doubtful(all)
	l.Seen.Fetch = estimate(all, fetch)
	for i := range all {
		jobs = append(jobs, all[i].job)
	}
	return jobs
}

// serve sets how long jobs ran, and reports whether one waited.
func serve(all []entry, cores int) (waited bool) {
	latest := map[string][]float64{} // ends, in their order
	for i := range all {
		e := &all[i]
		if !e.answered {
			continue
		}
		ends := latest[e.upstream]
		at, _ := slices.BinarySearch(ends, e.end)
		e.run = e.took
		if len(ends) < cores {
			latest[e.upstream] = slices.Insert(ends, at, e.end)
			continue
		}
		waited = waited || e.end-ends[0] < e.took
		if e.run = min(e.took, e.end-ends[0]); e.run < shortest {
			e.run = 0
		}
		if at > 0 {
			copy(ends, ends[1:at])
			ends[at-1] = e.end
		}
	}
	return waited
}

// likelihood is that of how long jobs ran, as a logarithm. Runs of a project have a distribution of Laplace on a
// logarithmic scale, those with a fetch another one, and all are equally wide.
func likelihood(all []entry) (sum float64) {
	for i := range all {
		if run := all[i].run; run > 0 {
			sum += math.Log((1 - doubt) / max(alike, run))
		} else {
			sum += math.Log(doubt / max(alike, all[i].took))
		}
	}
	n, free, width := 0.0, 1.0, 0.0
	for _, o := range observe(all) {
		for _, runs := range o[:told] {
			middle := max(alike, median(runs, 0))
			for _, run := range runs {
				width += math.Abs(math.Log(max(alike, run) / middle))
			}
			n, free = n+float64(len(runs)), free+float64(max(0, len(runs)-1))
		}
	}
	return sum - n*math.Log(max(alike, width/free))
}

// doubtful takes back the runs of jobs that ended before their turn, and of those that came while their project was fetched:
// they waited for that, but held no core. It returns the mean wait of the others, and how many jobs are not of them.
func doubtful(all []entry) (wait float64, unlike int) {
	fetched := map[[2]string]float64{} // when a project's fetch at an upstream ended
	for i := range all {
		e, at := &all[i], [2]string{all[i].upstream, string(all[i].job.Project)}
		switch e.run = min(e.run, e.most); {
		case e.run == 0, !e.cold && at[1] != "" && e.end-e.run < fetched[at]:
			e.run = 0
			unlike++
			continue
		case e.cold:
			fetched[at] = max(fetched[at], e.end)
		}
		wait += e.took - e.run
	}
	return wait / float64(max(1, len(all)-unlike)), unlike
}
