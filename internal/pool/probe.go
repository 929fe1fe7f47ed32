package pool

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// A report is some seconds old, and other sidecars have sent jobs since. So before a job is claimed, the upstreams that the
// policy would choose first, second and third are probed: each reports its load in the response to a small request. The load counts
// like a hint. A probe that fails changes nothing, and the last report counts.
//
// Source: Sparrow (Ousterhout et al., 2013) and Prequal (Wydrowski et al., 2024), which probe random servers. Here the policy
// names them, because few upstreams have a project's data.
const (
	// probed is the number of upstreams that are probed for a job.
	probed = 3
	// A probe can take probeShare of the service time, and at most maxProbe. Where that is less than minProbe, jobs are too
	// short to wait for a probe.
	probeShare = 0.01
	minProbe   = time.Millisecond
	maxProbe   = 20 * time.Millisecond
	// An upstream whose last failedProbes probes failed is not probed for pauseProbes: it has no such page, or is too slow.
	failedProbes = 3
	pauseProbes  = time.Minute
)

// probeTimeout is how long a probe can take; 0 means that jobs are not worth one.
func (p *Pool) probeTimeout() time.Duration {
	timeout := min(seconds(probeShare*p.norms.service), maxProbe)
	if !p.cfg.Probe || timeout < minProbe {
		return 0
	}
	return timeout
}

// probes reports whether m is probed: it has reported its load before, and its probes do not fail.
func (m *member) probes(now time.Time) bool {
	return !m.load.at.IsZero() && !now.Before(m.probing.paused)
}

// Probes returns the upstreams to probe before Claim is called for r, and how long the probes can take. There are none if
// the job has no choice, and for prompts, whose wait depends on more than a number of jobs. It changes nothing.
func (p *Pool) Probes(now time.Time, r Request, tried *Places) (addresses []string, timeout time.Duration) {
	if timeout = p.probeTimeout(); timeout == 0 {
		return nil, 0
	}
	rng := rand.New(rand.NewPCG(p.watch.Claims(), r.Project))
	heavy, c := p.Heavy(r), &p.memory
	p.need(&c.need, &r, false)
	c.need.heavy = heavy
	if err := p.eligible(now, c, r.Among, tried, rng); err != nil || len(c.members) < 2 || c.need.prompt != nil {
		return nil, 0
	}
	for range min(probed, len(c.members)) {
		i := p.cfg.Policy.Pick(c.job, c.views, rng)
		if m := c.members[i]; m.probes(now) {
			addresses = append(addresses, m.Address)
		}
		c.remove(i)
	}
	return addresses, timeout
}

// Probed takes the result of a probe into account: the upstream's load, or nil if the probe failed. If the load says that
// the data of the job's project is cached, a job was sent there by another sidecar. project is 0 if the probe named none.
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
	p.hint(now, m, load)
	if load.Known && load.Cached && project != 0 && m.cached.has(project, m.cached.counts(now, p.cfg.Interval)) == selection.NotCached {
		m.cached.assumed.Put(project, now)
	}
}
