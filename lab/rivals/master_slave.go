package rivals

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// MasterSlave reserves the first m upstreams as masters for short jobs, which here are the high jobs. Of the low jobs it
// admits a share theta to the masters. Among the upstreams that are open to a job, it takes the one with the least expected stretch,
//
//	w / idle CPU + (1 - w) / available I/O
//
// where w is the share of its time that the job spends on a core. m is the smallest number of upstreams that is enough for
// the share of high jobs, and theta balances the work of a master and of a slave. Both adapt to the arriving jobs.
//
// Source: Zhu, Smith and Yang's M/S; without sampling M/S-ns, without reservation M/S-nr. Busy cores stand for the CPU,
// jobs that wait for a fetch stand for the disk. Weakness: an upstream's cache counts only through w.
type MasterSlave struct {
	// Sampled calculates w from the project's fetch and the service time; otherwise w is a half. Reserved admits only the
	// share theta of the low jobs to the masters.
	Sampled, Reserved bool

	high, onMasters float64 // share of high jobs among all, and share of the low jobs that were sent to masters
}

// sample is the weight of the latest job in a measured share.
const sample = 1.0 / 200

// ForSidecar returns the policy of one of several sidecars, which measures its own jobs.
func (m MasterSlave) ForSidecar(int) selection.Policy { return &m }

// Pick implements selection.Policy.
func (m *MasterSlave) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	high := job.Priority == selection.High
	m.high += sample * (truth(high) - m.high)
	masters, theta := m.split(len(views))
	var least selection.Least
	for i := range views {
		master := i < masters
		if high && !master || !high && master && m.Reserved && m.onMasters >= theta {
			continue
		}
		least.Offer(i, stretch(job, &views[i], m.Sampled), rng)
	}
	if !high {
		m.onMasters += sample * (truth(least.Index() < masters) - m.onMasters)
	}
	return least.Index()
}

// split returns m of n upstreams, and theta.
func (m *MasterSlave) split(n int) (masters int, theta float64) {
	masters = min(max(1, int(math.Ceil(float64(n)*m.high))), max(1, n-1))
	return masters, max(0, float64(masters)/float64(n)-m.high) / max(1e-9, 1-m.high)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// stretch is the expected duration of a job at an upstream, divided by its duration at an idle one.
func stretch(job selection.Job, v *selection.View, sampled bool) float64 {
	const least = 0.01
	w := 0.5
	if sampled {
		work := coresOf(v) / job.Rate(v)
		w = work / (work + (1-v.Warm)*job.Fetch)
	}
	cores := coresOf(v)
	return w/max(least, 1-(v.Jobs-v.BlockedJobs)/cores) + (1-w)/max(least, 1-v.BlockedJobs/cores)
}

// Stretch takes the upstream with the least stretch, for jobs of both priorities.
//
// Source: Zhu, Smith and Yang's choice of a node, without masters and slaves.
type Stretch struct{}

// Pick implements selection.Policy.
func (Stretch) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	var least selection.Least
	for i := range views {
		least.Offer(i, stretch(job, &views[i], true), rng)
	}
	return least.Index()
}
