package rivals

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// MasterSlave keeps the first m upstreams as masters for the short jobs, which here are the high ones, and lets a share theta of the
// others run there, too. Of the upstreams that a job may go to, it takes the one with the least expected stretch,
//
//	w / idle CPU + (1 - w) / available I/O
//
// where w is the share of its time that the job spends on a core. m is the least number of upstreams that is enough for
// the share of high jobs, and theta leaves as much work on each master as on each slave; both follow the jobs that come.
//
// Source: Zhu, Smith and Yang's M/S; without sampling M/S-ns, without reservation M/S-nr. Cores that run stand for the CPU,
// jobs that wait for a fetch for the disk. Weakness: an upstream's cache is no reason to go there, but for w.
type MasterSlave struct {
	// Sampled takes w from the project's own fetch and the service time; otherwise it is a half. Reserved keeps all low jobs but
	// theta off the masters.
	Sampled, Reserved bool

	high, onMasters float64 // shares: of jobs that are high, and of low jobs that went to masters
}

// sample is how much of a measured share a job changes.
const sample = 1.0 / 200

// ForSidecar is the policy of one of several sidecars, which measures its own jobs.
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

// split is m of n upstreams, and theta.
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

// stretch is the factor by which a job there takes longer than at an idle upstream.
func stretch(job selection.Job, v *selection.View, sampled bool) float64 {
	const least = 0.01
	w := 0.5
	if sampled {
		work := coresOf(v) / job.Rate(v)
		w = work / (work + (1-v.Warm)*job.Fetch)
	}
	cores := coresOf(v)
	return w/max(least, 1-(v.Jobs-v.Coreless)/cores) + (1-w)/max(least, 1-v.Coreless/cores)
}

// Stretch is the least stretch over all upstreams, whatever the job's priority.
//
// Source: Zhu, Smith and Yang's choice of a node, without masters.
type Stretch struct{}

// Pick implements selection.Policy.
func (Stretch) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	var least selection.Least
	for i := range views {
		least.Offer(i, stretch(job, &views[i], true), rng)
	}
	return least.Index()
}
