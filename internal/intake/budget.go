package intake

import (
	"fmt"
	"sync/atomic"
)

// Budget bounds the bytes of all the bodies kept at one time. It is safe for
// concurrent use.
//
// The first peek bytes of a body are kept whatever the budget says, since
// nothing could be read out of the job without them. They are counted, too. So
// Used exceeds the budget by at most peek bytes for every open job.
type Budget struct {
	bytes int64
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes. With 0 or less, bodies longer than
// peek are never kept.
func NewBudget(bytes int64) *Budget { return &Budget{bytes: bytes} }

// Used returns the bytes that are kept now.
func (b *Budget) Used() int64 { return b.used.Load() }

// take counts n more bytes if they are within the budget.
func (b *Budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used > b.bytes-n {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// force counts n more bytes, within the budget or not.
func (b *Budget) force(n int64) { b.used.Add(n) }

// give takes n bytes out of the count.
func (b *Budget) give(n int64) {
	if used := b.used.Add(-n); used < 0 {
		panic(fmt.Sprintf("BUG: intake: %d bytes given back to the budget were never taken", -used))
	}
}
