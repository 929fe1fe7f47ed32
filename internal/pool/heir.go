package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// heirLives is how long an heir must live on at least: to fetch data for less
// does not pay, as for cold placements.
const heirLives = 30 * time.Minute

// Heir is the upstream that a project falls to when the one at leaving goes:
// of those that may be picked and stay, the first in the project's rendezvous
// order. It is "" when there is none, and when one of them has the data already.
func (p *Pool) Heir(now time.Time, project uint64, leaving string) string {
	heir, best := "", 0.0
	for _, m := range p.set {
		if m.Address == leaving || m.Draining || !m.gate.Ready(now) ||
			!m.StopsAt.IsZero() && m.StopsAt.Before(now.Add(heirLives)) {
			continue
		}
		if status := m.cache(project, now, &p.cfg); status != selection.NotCached {
			return ""
		}
		if score := selection.Rendezvous(project, m.id, m.Weight); heir == "" || score > best {
			heir, best = m.Address, score
		}
	}
	return heir
}
