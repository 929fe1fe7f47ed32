package proxy

import "time"

// Idle is how many connections to each upstream no job uses, by its address.
func (p *Proxy) Idle() map[string]int { return p.upstreams.Idle() }

// SetLinger sets how long the rest of a refused body is read, before the proxy serves.
func (p *Proxy) SetLinger(d time.Duration) { p.linger = d }
