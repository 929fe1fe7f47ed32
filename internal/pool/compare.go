package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// comparedTogether is how many upstreams share one comparison: in a large pool, one report more moves
// no median far.
const comparedTogether = 64

// compare finds how many cores and which pace are believed of an upstream, beside those of the others.
func (p *Pool) compare() {
	p.uncompared = 0
	cores, paces := make([]float64, 0, len(p.set)), make([]float64, 0, len(p.set))
	for _, m := range p.set {
		if n := m.toldCores(); n > 0 {
			cores = append(cores, float64(n))
		}
		if pace := m.rate.perCore(); pace > 0 {
			paces = append(paces, pace)
		}
	}
	p.mostCores, p.mostPace = maxTimes*lowerMedian(cores), maxPace
	pace := lowerMedian(paces)
	if len(paces) >= enoughPaces {
		p.mostPace = min(p.mostPace, maxTimes*pace)
	}
	p.service = 0
	if n := len(paces); n > 0 {
		p.service = 1 / paces[n/2] // of two, the quicker one's: the slower may be sick
	}
}

// plausibleCores is what m reports, or else what discovery says, if that can be true; 0 is unknown.
func (p *Pool) plausibleCores(m *member) int {
	for _, cores := range [...]int{m.reportedCores, m.Cores} {
		if cores > 0 && float64(cores) <= p.mostCores {
			return cores
		}
	}
	return 0
}

// cores is how many joblets run at m at once.
func (p *Pool) cores(m *member) float64 {
	return cmp.Or(float64(p.plausibleCores(m)), m.load.cores(), unheardCores)
}

// pace is how many jobs a busy core of m completes per second, if that can be true; 0 is unknown.
func (p *Pool) pace(m *member) float64 {
	if pace := m.rate.perCore(); pace <= p.mostPace {
		return pace
	}
	return 0
}

// wrong says what is not believed of an upstream; "" is nothing.
func (p *Pool) wrong(m *member) string {
	wrong := []string{m.absurd}
	if m.doubts.doubted {
		wrong = append(wrong, "fewer than half of the jobs that this sidecar has there")
	}
	wrong = append(wrong, m.tooLong)
	if told, pace := m.toldCores(), m.rate.perCore(); float64(told) > p.mostCores {
		wrong = append(wrong, fmt.Sprintf("%d cores, more than %d times as many as others", told, maxTimes))
	} else if pace > p.mostPace {
		wrong = append(wrong, fmt.Sprintf("%.3g jobs per second and core, far more than others", pace))
	}
	return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), ", ")
}
