package trace

import (
	"cmp"
	"fmt"
	"slices"
)

// Sort puts the jobs of a whole trace in order of their offsets, and keeps
// every After on the job it meant. It returns an error when a job would then
// come before the one that it waits for.
func Sort(jobs []Job) error {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Offset, jobs[b].Offset) })

	sorted := make([]Job, len(jobs))
	lines := make([]Line, len(jobs)) // lines[i] is where line i+1 goes
	for to, from := range order {
		sorted[to] = jobs[from]
		lines[from] = Line(to + 1)
	}
	for i := range sorted {
		job := &sorted[i]
		if job.After == 0 {
			continue
		}
		if job.After = lines[job.After-1]; job.After > Line(i) {
			return fmt.Errorf("trace: line %d waits for a job that starts later", order[i]+1)
		}
	}
	copy(jobs, sorted)
	return nil
}
