package scenario

import (
	"errors"
	"io"
	"slices"
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/pkg/trace"
)

// Demand is what the jobs of a trace need.
type Demand struct {
	Load *capacity.Load
	// Unloaded is the median time to first byte of a job that waits for nothing.
	Unloaded time.Duration
	// Upstreams is how many answered, where the trace is a capture.
	Upstreams int
}

// ReadDemand reads what the jobs of a trace need. Where the trace does not tell which jobs
// fetched, the first of each project and version did. Shared rules count once.
func ReadDemand(path string) (Demand, error) {
	in, err := OpenTrace(path, -1)
	if err != nil {
		return Demand{}, err
	}
	defer in.Close()
	d := Demand{Load: capacity.NewLoad(time.Second)}
	var first []float64 // seconds until the first byte, of each job
	upstreams := map[string]bool{}
	done := map[data]bool{}
	for {
		j, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Demand{}, err
		}
		d.Load.Add(seconds(j.Offset), seconds(work(&j, done)))
		if j.Kind == trace.Process {
			first = append(first, j.Operators)
		}
		if j.Measured != nil && j.Measured.Upstream != "" {
			upstreams[j.Measured.Upstream] = true
		}
	}
	d.Upstreams = len(upstreams)
	if len(first) > 0 {
		slices.Sort(first)
		d.Unloaded = seconds(first[len(first)/2])
	}
	return d, nil
}

// data is what jobs share: a project's data, or the results of shared rules.
type data struct {
	project trace.Project
	version int64
	shared  string
}

// work is what a job costs beyond what others have done, in core-seconds.
func work(j *trace.Job, done map[data]bool) float64 {
	fetched, shared := data{project: j.Project, version: j.Version}, data{j.Project, j.Version, j.Shared}
	cold := !done[fetched]
	if j.Measured != nil {
		cold = j.Measured.Cache == "none"
	}
	sum := j.Operators + j.Output
	if cold {
		sum += j.Load
	}
	if j.Shared != "" && !done[shared] {
		sum += j.SharedRules
	}
	done[fetched], done[shared] = true, true
	return sum
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
