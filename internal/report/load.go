package report

import (
	"math"

	"pilotfish/internal/pool"
)

// maxCores bounds the cores that are believed of one upstream.
const maxCores = 1 << 20

// load reads what the page says of the upstream's load, and the totals from
// which means are taken. Without running and stalled there is no report:
// either at 0 would draw all jobs to an upstream that only fails to tell.
func (p page) load(names Names) (r pool.Report, t totals, err error) {
	if r.Stalled, err = p.levels(names.Stalled); err != nil {
		return r, t, err
	}
	if r.Running, err = p.levels(names.Running); err != nil {
		return r, t, err
	}
	if cores := p.sum(names.Cores); cores <= maxCores {
		r.Cores = int(math.Ceil(cores)) // a share of a core still runs one joblet
	}
	r.CoresBusy = orNegative(p.sum(names.CoresBusy))
	r.Completed = orNegative(p.sum(names.Completed))
	t = totals{
		wait:      p.total(names.Wait),
		execution: p.total(names.Execution),
		response:  p.total(names.Response),
	}
	return r, t, nil
}

// orNegative turns the unknown into what a pool.Report says for it.
func orNegative(x float64) float64 {
	if math.IsNaN(x) {
		return -1
	}
	return x
}
