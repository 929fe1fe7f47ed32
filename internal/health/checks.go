package health

import (
	"errors"
	"time"
)

// checksInARow is how many health checks must fail in a row to open the breaker.
const checksInARow = 2

// ErrRefused is the error of a poll or a health check whose connection was refused: nothing listens at the address.
var ErrRefused = errors.New("connection refused")

// checks are the health checks of an upstream.
type checks struct {
	failed int  // in a row
	opened bool // failed checks, not jobs, last opened the breaker or kept it open
}

// Checked records a health check: why it failed, or nil if it passed. A refused connection, or two failures in a row,
// open the breaker until after the next check; interval is the mean time between checks. If failed checks opened the
// breaker, a passed check lets the next job through at once. If failed jobs opened it, a passed check only shortens the
// open time to the first, undoubled one, because it says little about whether jobs succeed.
func (b *Breaker) Checked(now time.Time, interval time.Duration, why error) {
	if why == nil {
		b.Reached(now)
		if b.checks.opened && b.state == open {
			b.tries.until = now
		}
		b.checks = checks{}
		b.shortenOpenTime()
		return
	}
	b.checks.failed++
	switch {
	case errors.Is(why, ErrRefused):
		b.Refused(now)
	case b.checks.failed < checksInARow:
		return
	case !b.checks.opened || b.state != open:
		b.force(now, "health check failed: "+RootCause(why).Error())
	}
	b.checks.opened = true
	if next := now.Add(silentIntervals * interval); b.tries.until.Before(next) {
		b.tries.until = next
	}
}

// RootCause returns the innermost error: the errors that wrap it only repeat the address.
func RootCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// shortenOpenTime shortens the open time to the first, undoubled one. If the breaker opens again, its open time is
// doubled as if it had not been shortened.
func (b *Breaker) shortenOpenTime() {
	if b.state == open && b.tries.early.Before(b.tries.until) {
		b.tries.until = b.tries.early
	}
}
