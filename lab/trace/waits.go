package trace

import (
	"cmp"
	"math"
	"slices"
)

// Waits that are not in the logs are estimated. An upstream that runs n jobs at a time, first come, first served, starts
// a job at its arrival, or when fewer than n of the jobs that arrived before it have not ended.

const (
	// Execution times below shortest count as unknown, and those below equalRuns count as equal, in seconds.
	shortest, equalRuns = 0.001, 0.01
	// doubt is the assumed share of jobs that are served out of order, such as high jobs that the log does not mark.
	doubt = 0.1
)

// Estimate returns the jobs with their costs, assuming that an upstream runs cores jobs at a time (all upstreams
// together, if the logs do not name them). 0 means the most likely number. If no cache miss is known, fetch is the
// assumed time of a fetch in seconds, and 0 means as long as a job.
func (l *Logs) Estimate(cores int, fetch float64) (jobs []Job) {
	all := l.entries
	if l.Seen.Cores = cores; cores == 0 {
		l.Seen.Cores = likeliest(all)
	}
	byArrival(all, l.Seen.Cores)
	l.Seen.Wait, l.Seen.Unlike = doubtful(all)
	l.Seen.Crowding = crowding(all)
	l.Seen.Fetch = estimate(all, fetch)
	for i := range all {
		jobs = append(jobs, all[i].job)
	}
	return jobs
}

// likeliest returns the number of cores with the highest likelihood.
func likeliest(all []entry) (cores int) {
	best := math.Inf(-1)
	for n, waited := 1, true; waited; n += max(1, n/12) {
		waited = byArrival(all, n)
		if fit := likelihood(all); fit > best+1e-3 { // the order of maps changes less
			best, cores = fit, n
		}
	}
	return cores
}

// byArrival sets the execution times, assuming that jobs start in the order of arrival. It reports whether a job waited.
func byArrival(all []entry, cores int) (waited bool) {
	latest := map[string][]float64{} // the ends of the last jobs at each upstream, in ascending order
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

// likelihood returns the log-likelihood of the execution times. The logarithms of a project's execution times have a Laplace
// distribution, with a different mean for those that include a fetch; the width is the same for all.
func likelihood(all []entry) (sum float64) {
	for i := range all {
		if run := all[i].run; run > 0 {
			sum += math.Log((1 - doubt) / max(equalRuns, run))
		} else {
			sum += math.Log(doubt / max(equalRuns, all[i].took))
		}
	}
	n, free, width := 0.0, 1.0, 0.0
	for _, o := range observe(all) {
		for _, runs := range o[:reported] {
			middle := max(equalRuns, median(runs, 0))
			for _, run := range runs {
				width += math.Abs(math.Log(max(equalRuns, run) / middle))
			}
			n, free = n+float64(len(runs)), free+float64(max(0, len(runs)-1))
		}
	}
	return sum - n*math.Log(max(equalRuns, width/free))
}

// doubtful removes the execution times of jobs that were served out of order, and of jobs that arrived during a fetch
// of their project: they waited for the fetch without a core. It returns the mean wait of the other jobs, and how many
// it removed.
func doubtful(all []entry) (wait float64, unlike int) {
	fetched := map[[2]string]float64{} // the end of a project's fetch at an upstream
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

// crowding compares execution times at upstreams that had many other jobs with those at upstreams that had few: the
// difference of the mean logarithms, minus three standard errors. It is positive if an upstream runs fewer jobs at a
// time than assumed, or does not start jobs in the order of arrival.
func crowding(all []entry) float64 {
	type run struct {
		others int
		ratio  float64
	}
	middle := map[Project][2]float64{}
	for p, o := range observe(all) {
		middle[p] = [2]float64{warm: median(o[warm], 0), cold: median(o[cold], 0)}
	}
	latest, runs := map[string][]float64{}, []run{}
	for i := range all {
		e := &all[i]
		if !e.answered {
			continue
		}
		ends := latest[e.upstream]
		gone, _ := slices.BinarySearch(ends, e.end-e.took)
		ends = ends[gone:]
		kind := warm
		if e.cold {
			kind = cold
		}
		if m := middle[e.job.Project][kind]; e.run > 0 && e.job.Load == 0 && m > 0 {
			runs = append(runs, run{len(ends), math.Log(max(equalRuns, e.run) / max(equalRuns, m))})
		}
		place, _ := slices.BinarySearch(ends, e.end)
		latest[e.upstream] = slices.Insert(ends, place, e.end)
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.others, b.others) })
	third := len(runs) / 3
	if third == 0 {
		return 0
	}
	difference, squares := 0.0, 0.0
	for i := range third {
		few, many := runs[i].ratio, runs[len(runs)-1-i].ratio
		difference += (many - few) / float64(third)
		squares += (few*few + many*many) / float64(third)
	}
	return difference - 3*math.Sqrt(squares/float64(third))
}
