package pool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// Ranked is one upstream as a policy sees it for a job.
type Ranked struct {
	// Address is host:port.
	Address string `json:"address"`
	// Picked is set for the upstream that the policy picks.
	Picked bool `json:"picked"`
	// Heavy is set for an upstream for heavy jobs.
	Heavy bool `json:"heavy,omitempty"`
	// Shadow is set for the upstream that the shadow policy would pick.
	Shadow bool `json:"shadow,omitempty"`
	// Cache is whether the project's data is cached there: none, assumed or cached.
	Cache string `json:"cache"`
	// Found is the cached share of the job's data, by bytes if sizes are known.
	Found float64 `json:"found"`
	// Jobs is the estimated number of jobs there now.
	Jobs float64 `json:"jobs"`
	// Overtaken is the number of waiting jobs that this one would overtake: those of low priority, if its own is high.
	Overtaken float64 `json:"overtaken,omitempty"`
	// Expected is how long the job would probably hold a core there, in seconds, including the fetch of data that is
	// not cached; absent while unknown. ExpectedBy names the jobs from which the part without the fetch was learned:
	// length_key (jobs of the project with the same length key), project, or all.
	Expected   float64 `json:"expected_seconds,omitempty"`
	ExpectedBy string  `json:"expected_by,omitempty"`
	// Probe is set if the upstream would be probed before the job is sent.
	Probe bool `json:"probe,omitempty"`
	// Cost is the parts of its cost; absent if the policy computes no costs.
	Cost *selection.Cost `json:"cost,omitempty"`
}

// Explain ranks the eligible upstreams for a job, the policy's choice first. It claims no upstream and changes nothing:
// it breaks ties with its own random source.
func (p *Pool) Explain(now time.Time, r Request) ([]Ranked, error) {
	rng := rand.New(rand.NewPCG(uint64(now.UnixNano()), r.Project))
	c := &candidates{}
	p.fillNeed(&c.need, &r, false)
	c.need.heavy = p.IsHeavy(r)
	if err := p.eligible(now, c, r.Among, nil, rng); err != nil {
		return nil, err
	}
	pick := c.choose(p.cfg.Policy, &c.costs, rng)
	ranked := make([]Ranked, len(c.views))
	for i, v := range c.views {
		ranked[i] = Ranked{Address: c.members[i].Address, Picked: i == pick, Heavy: c.members[i].Heavy, Cache: v.Cache.String(), Found: v.Warm, Jobs: v.Jobs, Overtaken: v.Overtaken}
		ranked[i].Expected, ranked[i].ExpectedBy = p.lengths.coreTime(&c.need, &c.views[i], c.job.Fetch)
		if len(c.costs) > 0 {
			ranked[i].Cost = &c.costs[i]
		}
	}
	if s := p.cfg.Shadow; s != nil {
		ranked[s.Policy.Pick(c.job, c.views, rng)].Shadow = true
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int { // the others by cost, or by jobs if the policy computes no costs
		switch {
		case a.Picked:
			return -1
		case b.Picked:
			return 1
		case a.Cost != nil:
			return cmp.Compare(a.Cost.Total, b.Cost.Total)
		}
		return cmp.Compare(a.Jobs, b.Jobs)
	})
	for i := range ranked[:min(probed, len(ranked))] {
		ranked[i].Probe = p.probeTimeout() > 0 && len(ranked) > 1 && c.need.prompt == nil && p.members[ranked[i].Address].canProbe(now)
	}
	return ranked, nil
}
