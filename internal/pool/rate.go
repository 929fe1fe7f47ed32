package pool

import (
	"math"
	"time"
)

// rateMemory is the half-life of what is known about completion rates.
const rateMemory = time.Minute

// rate learns how many jobs a busy core completes per second: completions
// over core-seconds, both fading. Dividing by the cores that were in fact busy
// keeps a quiet upstream from looking like a slow one.
type rate struct {
	done, busy float64
	at         time.Time
	completed  float64 // the upstream's counter at the last report
	lastBusy   float64
}

// observe takes completions and the mean number of busy cores since the last
// call into account.
func (r *rate) observe(now time.Time, done, busy float64) {
	if dt := now.Sub(r.at).Seconds(); !r.at.IsZero() && dt > 0 {
		fade := math.Exp2(-dt / rateMemory.Seconds())
		r.done = r.done*fade + done
		r.busy = r.busy*fade + busy*dt
	}
	r.at = now
}

// perCore is completions per second and busy core; 0 while unknown.
func (r *rate) perCore() float64 {
	if r.busy <= 0 || r.done <= 0 {
		return 0
	}
	return r.done / r.busy
}
