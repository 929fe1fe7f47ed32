package selection

import "math/rand/v2"

// The parameters of Stretch.
const (
	// The share of a job's time that it spends on a core and not on fetching: where
	// its project is cached or assumed cached, and where it is not. The source
	// samples the share off line for every kind of request; here there are two kinds.
	stretchCachedCPU = 0.95
	stretchColdCPU   = 0.5
	// stretchReserve is the share of an upstream's cores that low jobs see as
	// taken. The source reserves cores for short jobs, which here are the high
	// ones. It reserves them on some servers only, and adjusts the share to the load.
	stretchReserve = 0.1
	// stretchFloor is the least share that counts as free. It bounds the cost.
	stretchFloor = 0.01
)

// Stretch takes the upstream with the least expected stretch,
//
//	w / idle CPU + (1 - w) / idle I/O
//
// where w is the share of its time that such a job spends on a core: 0.95 where
// the project is cached, 0.5 where it must be fetched. Low jobs see a tenth less
// idle CPU, which stays free for high jobs. A job without a project counts as
// cached.
//
// Source: Zhu, Smith and Yang's master/slave scheduler. Use it where upstreams
// report how busy their cores and their disks or network are. It does not price
// the fetch itself.
type Stretch struct{}

// Pick implements Policy.
func (Stretch) Pick(job Job, views []View, rng *rand.Rand) int {
	var lowest Least
	for i := range views {
		lowest.Offer(i, stretch(job, &views[i]), rng)
	}
	return lowest.Index()
}

// stretch is the factor by which a job there takes longer than at an idle upstream.
func stretch(job Job, v *View) float64 {
	w := stretchCachedCPU
	if job.Project != 0 && v.Cache == NotCached {
		w = stretchColdCPU
	}
	cpu := v.IdleCPU
	if job.Priority == Low {
		cpu -= stretchReserve
	}
	return w/max(cpu, stretchFloor) + (1-w)/max(v.IdleIO, stretchFloor)
}
