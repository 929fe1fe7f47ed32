package proxy

import "time"

// SetLinger sets how long the rest of a refused body is read, before the proxy serves.
func (p *Proxy) SetLinger(d time.Duration) { p.linger = d }
