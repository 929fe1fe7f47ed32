package pool

import (
	"fmt"
	"slices"
	"time"
)

// owe counts a claim at m, the latest of all.
func (p *Pool) owe(now time.Time, m *member) {
	s := &m.suspicion
	if s.owed == 0 {
		s.from, s.own, s.begun = p.number, 0, 0
	}
	s.own++
	s.owed++
	if !m.owes {
		m.owes, p.owing = true, append(p.owing, m)
	}
	if s.asked = now; s.why != "" {
		p.suspects[m] = struct{}{}
	}
	p.weigh(now, m)
}

// answerBegan clears m, where the answer to a claim of that number began, and tells the others.
func (p *Pool) answerBegan(now time.Time, m *member, number uint64) {
	m.suspicion.why, m.suspicion.answered, m.suspicion.owed = "", now, 0
	p.owing = slices.DeleteFunc(p.owing, func(other *member) bool {
		other.owes = other.suspicion.owed > 0
		return !other.owes
	})
	for _, other := range p.owing {
		if s := &other.suspicion; other.inSet && number >= s.from {
			s.begun++
			if p.silent(now, other) { // it may get no job for long: the answers elsewhere are evidence, too
				p.weigh(now, other)
			}
		}
	}
}

// weigh compares the answers that m owes with those of the others.
func (p *Pool) weigh(now time.Time, m *member) {
	s := &m.suspicion
	elsewhere := int(p.number-s.from) + 1 - s.own
	chance := s.chance(elsewhere)
	if s.why != "" || chance >= doubtful {
		return
	}
	switch {
	case chance < hopeless && s.failed > 0, chance < unheard && p.silent(now, m) && s.owed >= enoughOwed:
		p.heard = true
		p.suspect(now, m, fmt.Sprintf("it owes %d answers and gave none, while %d of %d jobs elsewhere were answered", s.owed, s.begun, elsewhere))
	case !m.polled.IsZero() && now.Sub(m.polled) >= askAgain && now.Sub(s.early) >= askAgain:
		s.early = now
		p.ask = append(p.ask, m.Address)
	}
}

// silent reports whether an upstream is judged as one that does not report.
func (p *Pool) silent(now time.Time, m *member) bool {
	return now.Sub(m.polled) > silence*p.cfg.Interval
}

// Ask is the upstreams that should report at once, each told once: they owe answers
// for longer than is usual.
func (p *Pool) Ask() (addresses []string) {
	addresses, p.ask = p.ask, nil
	return addresses
}
