package judge

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/lab/workload"
)

// The time in which jobs arrive, and the warm-up at its start, which is not measured.
const (
	length = 1200 * time.Second
	warmUp = 300 * time.Second
)

// Setting is one draw of a family.
type Setting struct {
	Load, Fetch, Cache float64
	Workload           workload.Config
	Fleet              sim.Fleet
	Sidecars           sim.Sidecars
	WarmUp             time.Duration // jobs that begin in it are not counted
	Flood              bool          // the jobs of the busiest project, the flood, are not measured
}

func (f *Family) draw(seed uint64) *Setting {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &Setting{
		Load: f.Load.draw(rng), Fetch: f.Fetch.draw(rng), Cache: f.Cache.draw(rng),
		Workload: workload.Default(), Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars(), WarmUp: warmUp,
	}
	w := &s.Workload
	w.Pattern, w.Jobs, w.Duration, w.StartHour, w.Static = f.Pattern, f.Jobs.whole(rng), length.Seconds(), 9, true
	w.HighShare, w.Submitters = f.High.draw(rng), f.Sidecars.whole(rng)
	s.Fleet.Upstreams, s.Fleet.Cores = f.Upstreams.whole(rng), f.Cores.whole(rng)
	s.Sidecars.Count, s.Sidecars.Hints, s.Sidecars.Probe, s.Sidecars.Withdraw = w.Submitters, f.Hints, f.Hints, f.Hints
	s.Sidecars.LengthKey = true
	s.Fleet.Order = "expected" // as at the reference server
	f.change(rng, s)
	return s
}

// Jobs generates the jobs of a seed. Their work is scaled to the setting's load, and their fetches to its fetch time.
// cache is the size of an upstream's cache in bytes.
func (s *Setting) Jobs(seed uint64) (jobs []trace.Job, cache int64, err error) {
	w := s.Workload
	w.Seed = seed
	g, err := workload.New(w)
	if err != nil {
		return nil, 0, err
	}
	work, fetch, bytes := 0.0, 0.0, map[trace.Project]int64{}
	for job := range g.Jobs {
		work += job.Work() - job.Load
		fetch += job.Load
		bytes[job.Project] = job.Bytes
		jobs = append(jobs, job)
	}
	more := s.Load * s.cores() * w.Duration / work
	longer := s.Fetch * work * more / fetch
	for i := range jobs {
		j := &jobs[i]
		j.SharedRules, j.Operators, j.Output, j.Load = j.SharedRules*more, j.Operators*more, j.Output*more, j.Load*longer
	}
	total, largest := 0.0, int64(1)
	for _, n := range bytes {
		total += float64(n)
		largest = max(largest, n)
	}
	return jobs, max(largest, int64(s.Cache*total)), nil
}

// mostOf returns the project with the most jobs.
func mostOf(jobs []trace.Job) uint64 {
	counts, most := map[trace.Project]int{}, jobs[0].Project
	for i := range jobs {
		counts[jobs[i].Project]++
		if counts[jobs[i].Project] > counts[most] {
			most = jobs[i].Project
		}
	}
	return intake.Key(string(most))
}

// cores returns the sum of all upstreams' cores, in cores of usual speed.
func (s *Setting) cores() float64 {
	u := s.Fleet.Unlike
	return float64(s.Fleet.Upstreams*s.Fleet.Cores) + float64(u.Upstreams)*(float64(u.Cores)*u.Speed-float64(s.Fleet.Cores))
}
