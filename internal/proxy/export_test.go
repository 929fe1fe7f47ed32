package proxy

import (
	"cmp"
	"time"
)

// Idle is how many connections to each upstream no job uses, by its address.
func (p *Proxy) Idle() map[string]int { return p.upstreams.Idle() }

// SetTimes sets how long a body may be silent, and how long the rest of one is read, before the proxy serves. 0
// leaves the default.
func (p *Proxy) SetTimes(idle, linger time.Duration) {
	p.bodyIdle, p.linger = cmp.Or(idle, p.bodyIdle), cmp.Or(linger, p.linger)
}
