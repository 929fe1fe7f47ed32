package pool

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// A report can be seconds old, and other sidecars have sent jobs since. So before a job is claimed, pilotfish probes
// the upstreams that the policy would choose first, second and third: it sends a small request, and the response
// contains the upstream's load. This load is used like a load hint. If a probe fails, the last report is used.
//
// Source: Sparrow (Ousterhout et al., 2013) and Prequal (Wydrowski et al., 2024), which probe random servers. Here the
// policy chooses them, because few upstreams have a project's data.
const (
	// probed is the number of upstreams that are probed for a job.
	probed = 3
	// The timeout of a probe is probeShare of the service time, and at most maxProbe. If that is less than minProbe,
	// jobs are too short to wait for a probe.
	probeShare = 0.01
	minProbe   = time.Millisecond
	maxProbe   = 20 * time.Millisecond
	// An upstream whose last failedProbes probes failed is not probed for pauseProbes: it does not support probes or is
	// too slow.
	failedProbes = 3
	pauseProbes  = time.Minute
)

// probeTimeout returns the timeout of a probe; 0 means that jobs are too short for probes.
func (p *Pool) probeTimeout() time.Duration {
	timeout := min(seconds(probeShare*p.norms.service), maxProbe)
	if !p.cfg.Probe || timeout < minProbe {
		return 0
	}
	return timeout
}

// canProbe reports whether m can be probed: it has reported its load before, and its probes are not paused.
func (m *member) canProbe(now time.Time) bool {
	return !m.load.at.IsZero() && !now.Before(m.probing.paused)
}

// Probes returns the upstreams to probe before Claim is called for r, and the timeout of the probes. It returns none if
// only one upstream is eligible, and for prompts, whose wait depends on more than the number of jobs. It changes
// nothing.
func (p *Pool) Probes(now time.Time, r Request, tried *AddressSet) (addresses []string, timeout time.Duration) {
	if timeout = p.probeTimeout(); timeout == 0 {
		return nil, 0
	}
	rng := rand.New(rand.NewPCG(p.watch.Claims(), r.Project))
	heavy, c := p.IsHeavy(r), &p.scratch
	p.fillNeed(&c.need, &r, false)
	c.need.heavy = heavy
	if err := p.eligible(now, c, r.Among, tried, rng); err != nil || len(c.members) < 2 || c.need.prompt != nil {
		return nil, 0
	}
	for range min(probed, len(c.members)) {
		i := p.cfg.Policy.Pick(c.job, c.views, rng)
		if m := c.members[i]; m.canProbe(now) {
			addresses = append(addresses, m.Address)
		}
		c.remove(i)
	}
	return addresses, timeout
}

// Probed takes the result of a probe into account: the upstream's load, or nil if the probe failed. If the response
// says that the project's data is cached, another sidecar has sent a job of the project there. project is 0 if the
// probe did not name a project.
func (p *Pool) Probed(now time.Time, address string, project uint64, load *Hint) {
	m, ok := p.members[address]
	if !ok || !m.inSet {
		return
	}
	if load == nil {
		if m.probing.failed++; m.probing.failed >= failedProbes {
			m.probing = probing{paused: now.Add(pauseProbes)}
		}
		return
	}
	m.probing.failed = 0
	p.applyHint(now, m, load)
	if load.Known && load.Cached && project != 0 && m.cached.status(project, m.cached.listingFresh(now, p.cfg.Interval)) == selection.NotCached {
		m.cached.assumed.Put(project, now)
	}
}
