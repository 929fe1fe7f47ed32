package quality

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/record"
)

const (
	// costPeriod is the length of a period for which costs are added up. The current and the previous period are
	// reported.
	costPeriod = 30 * time.Minute
	// If a period has more than mostCosts projects, only the keptCosts with the largest costs are kept. Finding them
	// sorts all projects; keptCosts is far below mostCosts, so that this happens rarely. listedCosts is the maximum
	// number of projects that are reported.
	mostCosts, keptCosts, listedCosts = 8000, 1000, 20
)

// ProjectCost is the cost of one project's jobs of this sidecar in the last 30 to 60 minutes.
type ProjectCost struct {
	// Project is the project; "" is the jobs without one. Rest is set for the sum of all projects that are not listed.
	Project string `json:"project"`
	Rest    bool   `json:"rest,omitempty"`
	// Jobs is the number of jobs that ended, UpstreamSeconds the time that they took at upstreams without waiting, as far as is known.
	Jobs            uint64  `json:"jobs"`
	UpstreamSeconds float64 `json:"upstream_seconds"`
	// Cost is the share of the upstreams' cost that is proportional to upstream_seconds.
	Cost float64 `json:"cost"`
}

// merge adds the jobs of another project.
func (c *ProjectCost) merge(o ProjectCost) {
	c.Jobs, c.UpstreamSeconds = c.Jobs+o.Jobs, c.UpstreamSeconds+o.UpstreamSeconds
}

// costs adds up the time that the jobs of each project take at upstreams, in the present and in the previous period.
type costs struct {
	start    time.Duration // of the present period
	now, old spent
}

// spent holds the sums of one period. If there are many projects, those with the least time are summed up in rest.
type spent struct {
	projects map[string]ProjectCost
	rest     ProjectCost
}

func (c *costs) add(now time.Duration, j *record.Job) {
	if ended := now - c.start; c.now.projects == nil || ended >= costPeriod {
		if c.old = c.now; ended >= 2*costPeriod {
			c.old = spent{}
		}
		c.now, c.start = spent{projects: make(map[string]ProjectCost)}, now
	}
	name := j.Facts.Project
	one := c.now.projects[name]
	one.merge(ProjectCost{Jobs: 1, UpstreamSeconds: atUpstream(j).Seconds()})
	if c.now.projects[name] = one; len(c.now.projects) > mostCosts {
		kept, rest := busiest(c.now.projects, keptCosts)
		c.now.rest.merge(rest)
		clear(c.now.projects)
		for _, one := range kept {
			c.now.projects[one.Project] = one
		}
	}
}

// atUpstream is the time from the start of a job's execution to its end, or from the start of its last attempt if the upstream does
// not report how long the job waited.
func atUpstream(j *record.Job) time.Duration {
	if len(j.Attempts) == 0 {
		return 0
	}
	started, ok := j.Waited()
	if !ok {
		started = j.Attempt().Start
	}
	return max(0, j.Total-started)
}

// list returns the costs of the busiest projects, and the rest. all is the sum.
func (c *costs) list() (list []ProjectCost, all ProjectCost) {
	sums, rest := make(map[string]ProjectCost, len(c.now.projects)+len(c.old.projects)), ProjectCost{Rest: true}
	for _, period := range []spent{c.now, c.old} {
		rest.merge(period.rest)
		for name, one := range period.projects {
			one.merge(sums[name])
			sums[name] = one
		}
	}
	list, others := busiest(sums, listedCosts)
	if rest.merge(others); rest.Jobs > 0 {
		list = append(list, rest)
	}
	for _, one := range list {
		all.merge(one)
	}
	return list, all
}

// busiest returns the n projects with the most time at upstreams, and the sum of the others.
func busiest(sums map[string]ProjectCost, n int) (most []ProjectCost, others ProjectCost) {
	for name, one := range sums {
		one.Project = name
		most = append(most, one)
	}
	slices.SortFunc(most, func(a, b ProjectCost) int {
		return cmp.Or(cmp.Compare(b.UpstreamSeconds, a.UpstreamSeconds), cmp.Compare(a.Project, b.Project))
	})
	n = min(n, len(most))
	for _, one := range most[n:] {
		others.merge(one)
	}
	return most[:n], others
}
