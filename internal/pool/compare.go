package pool

// comparedTogether is how many upstreams share one comparison: in a large pool, one report more moves
// no median far.
const comparedTogether = 64

// believe sets what is believed of the figures that m reports, and after some reports anew
// what is believed of all.
func (p *Pool) believe(m *member) {
	if p.uncompared++; p.uncompared*comparedTogether >= len(p.set) {
		p.compare()
		return
	}
	m.believe(p.mostCores, p.mostPace)
}

// compare sets what is believed of each upstream's cores and pace, beside those of the others.
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
	for _, m := range p.set {
		m.believe(p.mostCores, p.mostPace)
	}
}

// believe sets what is believed of m, where nothing above the bounds is.
func (m *member) believe(mostCores, mostPace float64) {
	b := &m.believed
	b.cores, b.pace = m.toldCores(), m.rate.perCore()
	b.tooManyCores, b.tooFast = float64(b.cores) > mostCores, b.pace > mostPace
	if b.tooManyCores {
		b.cores = 0
		if float64(m.Cores) <= mostCores {
			b.cores = m.Cores
		}
	}
	if b.tooFast {
		b.pace = 0
	}
}
