package sim

import (
	"time"

	"example.org/pilotfish/internal/settings"
)

// Links is the bytes a second that fetches pass at each upstream, and at what all upstreams
// share, such as a disk or a network. With 0 there is no bound. A fetch that passes links holds no core.
type Links struct {
	Upstream settings.Size `yaml:"upstream"`
	Shared   settings.Size `yaml:"shared"`
}

// link passes the data of one fetch after the other. What it passes, it passes whole, even where a
// server died meanwhile.
type link struct{ free time.Duration }

// pass is when data that comes now has passed.
func (l *link) pass(now time.Duration, bytes int64, perSecond settings.Size) time.Duration {
	if perSecond > 0 {
		l.free = max(l.free, now) + duration(float64(bytes)/float64(perSecond))
	}
	return l.free
}
