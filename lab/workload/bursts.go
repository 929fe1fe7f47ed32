package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
)

// Bursts describes single jobs in bursts of equal size. N. J. Turner's thesis uses two such loads: one burst with a
// second between its jobs (4.2, appendix A), and ten bursts of 20 simultaneous jobs, one every 30, 45 or 60 s (4.4,
// appendix B).
type Bursts struct {
	// Size is how many jobs a burst has. Times are in seconds: Every is from the start of one burst to that of the
	// next, Gap from one job of a burst to the next.
	Size  int     `yaml:"size"`
	Every float64 `yaml:"every"`
	Gap   float64 `yaml:"gap"`
	// Work replaces the drawn work of each job, in core-seconds. The job then has no fetch, and does a tenth of the work
	// before the first byte of its response. Queue replaces the timeout of waiting for a core.
	Work  float64 `yaml:"work"`
	Queue float64 `yaml:"queue"`
}

func (b Bursts) check(f *settings.Faults, c Config) {
	if c.Pattern != bursts {
		if b != (Bursts{}) {
			f.Add("size", "only the pattern %s has bursts", bursts)
		}
		return
	}
	f.Within("size", b.Size, 1, max(1, c.Jobs))
	f.Between("every", b.Every, 0, c.Duration)
	f.Between("gap", b.Gap, 0, c.Duration)
	f.Between("work", b.Work, 0, trace.MaxSeconds)
	f.Between("queue", b.Queue, 0, trace.MaxSeconds)
	if b.Every < float64(b.Size-1)*b.Gap && b.Size < c.Jobs {
		f.Add("every", "a burst of %d jobs with gaps of %v s has not ended after %v s", b.Size, b.Gap, b.Every)
	}
	if last := b.at(c.Jobs - 1); b.Size > 0 && last > c.Duration {
		f.Add("size", "the last of %d jobs is sent after %v s, and the duration is %v", c.Jobs, last, c.Duration)
	}
}

// fix applies Work and Queue to a job.
func (b Bursts) fix(job *trace.Job) {
	if b.Work > 0 {
		job.Load, job.Shared, job.SharedRules, job.Operators, job.Output = 0, "", 0, 0.1*b.Work, 0.9*b.Work
	}
	if b.Queue > 0 {
		job.Timeouts.Queue = b.Queue
	}
}

// at returns when a job is sent; the first has number 0.
func (b Bursts) at(job int) float64 {
	size := max(1, b.Size)
	return float64(job/size)*b.Every + float64(job%size)*b.Gap
}

// Hot is a changing set of popular projects.
type Hot struct {
	// Projects is the size of the set; 0 is none. Share is the share of the jobs that is for one of them.
	Projects int     `yaml:"projects"`
	Share    float64 `yaml:"share"`
	// Every is after how many seconds the set is replaced by other projects.
	Every float64 `yaml:"every"`
}

func (h Hot) check(f *settings.Faults) {
	f.Within("projects", h.Projects, 0, maxProjects)
	f.Between("share", h.Share, 0, 1)
	if h.Projects > 0 && !(h.Every > 0) {
		f.Add("every", "%v must be positive", h.Every)
	}
}

// hot draws whether a job that is sent now is for a project of the hot set, and for which one.
func (g *Generator) hot(now float64, rng *rand.Rand) (project int, ok bool) {
	h := g.cfg.Hot
	if h.Projects == 0 || rng.Float64() >= h.Share {
		return 0, false
	}
	set := rand.New(source(g.cfg.Seed, streamHot, int(now/h.Every)*h.Projects+rng.IntN(h.Projects)))
	return set.IntN(len(g.population)), true
}
