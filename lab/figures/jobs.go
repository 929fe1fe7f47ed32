package figures

import (
	"cmp"
	"slices"
)

// MaxJobs is the number of jobs of a run that are shown: its first ones.
const MaxJobs = 1500

// Jobs are the jobs of a run in the order of their arrival.
type Jobs struct {
	// At is the arrival of each job, First and Last are the times to the first and last byte of its response, and Whole
	// is the received share of the response: 1 is all, 0 nothing.
	At    []float64 `json:"at"`
	First []float64 `json:"first"`
	Last  []float64 `json:"last"`
	Whole []float64 `json:"whole"`

	// Slope is the growth of the time to the first byte, in seconds per job. Modes are the modes of equal parts
	// of the jobs.
	Slope float64 `json:"slope"`
	Modes []int   `json:"modes"`
}

// The modes of a system as Turner defines them: its waits are steady, rise, or jobs get no response.
const (
	flat = 1 + iota
	rising
	failing
)

const (
	parts = 40
	// A part is failing if at least failingShare of its jobs got no response. It is rising if its mean wait is more than
	// risingTimes that of the best twentieth of the parts.
	failingShare, risingTimes = 0.1, 1.5
)

// Add adds a job. first or last is negative if that byte was not received.
func (j *Jobs) Add(at, first, last, whole float64) {
	j.At, j.First, j.Last, j.Whole = append(j.At, at), append(j.First, first), append(j.Last, last), append(j.Whole, whole)
}

// Sort sorts the jobs by arrival and keeps the first MaxJobs.
func (j *Jobs) Sort() {
	order := make([]int, len(j.At))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(j.At[a], j.At[b]) })
	var sorted Jobs
	for _, i := range order[:min(MaxJobs, len(order))] {
		sorted.Add(j.At[i], j.First[i], j.Last[i], j.Whole[i])
	}
	*j = sorted
}

// describe sets slope and modes.
func (j *Jobs) describe() {
	n, sumX, sumY, sumXX, sumXY := 0.0, 0.0, 0.0, 0.0, 0.0
	for i, first := range j.First {
		if x := float64(i); first >= 0 {
			n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+first, sumXX+x*x, sumXY+x*first
		}
	}
	if spread := n*sumXX - sumX*sumX; spread > 0 {
		j.Slope = (n*sumXY - sumX*sumY) / spread
	}
	size := max(1, (len(j.At)+parts-1)/parts)
	var means, calm, absent []float64
	for begin := 0; begin < len(j.At); begin += size {
		sum, got, lost := 0.0, 0.0, 0.0
		for i := begin; i < min(begin+size, len(j.At)); i++ {
			if j.First[i] >= 0 {
				sum, got = sum+j.First[i], got+1
			}
			if j.Whole[i] == 0 {
				lost++
			}
		}
		if got > 0 {
			calm = append(calm, sum/got)
		}
		means, absent = append(means, sum/max(1, got)), append(absent, lost/float64(min(size, len(j.At)-begin)))
	}
	j.Modes = nil
	slices.Sort(calm)
	for i, mean := range means {
		mode := flat
		switch {
		case absent[i] >= failingShare:
			mode = failing
		case len(calm) > 0 && mean > risingTimes*calm[len(calm)/20]:
			mode = rising
		}
		j.Modes = append(j.Modes, mode)
	}
}
