package intake

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrNoRoom: what other jobs keep leaves no room for even the first bytes of this one.
var ErrNoRoom = errors.New("other jobs take all the memory for bodies")

// Budget bounds the bytes of all the bodies kept at one time. It is safe for
// concurrent use.
//
// A part of it is a reserve for the first peek bytes of each body: nothing could be
// read out of a job without them.
type Budget struct {
	whole, all atomic.Int64 // without and with the reserve
	used       atomic.Int64
	rooms      rooms // memory of bodies that have ended

	dropped    atomic.Int64 // bytes that bodies have left to the garbage collector since it was last made to run
	collecting sync.Mutex
}

// NewBudget returns a budget of so many bytes for whole bodies, and of a reserve beside it.
// Where there is nothing for whole bodies, those longer than peek are never kept.
func NewBudget(whole, reserve int64) *Budget {
	b := new(Budget)
	b.Resize(whole, reserve)
	return b
}

// Resize gives the budget other bounds. What is kept stays, also beyond them.
func (b *Budget) Resize(whole, reserve int64) {
	b.whole.Store(whole)
	b.all.Store(whole + reserve)
}

// Used returns the bytes that are kept now.
func (b *Budget) Used() int64 { return b.used.Load() }

// All returns the bytes of budget and reserve.
func (b *Budget) All() int64 { return b.all.Load() }

// Reserve counts n bytes that a job takes besides its body, in the reserve if need
// be, or returns ErrNoRoom. They must be given back by Return.
func (b *Budget) Reserve(n int64) error {
	if !b.take(b.all.Load(), n) {
		return ErrNoRoom
	}
	return nil
}

// Return takes n bytes out of the count.
func (b *Budget) Return(n int64) {
	if used := b.used.Add(-n); used < 0 {
		panic(fmt.Sprintf("BUG: intake: %d bytes given back to the budget were never taken", -used))
	}
}

// take counts n more bytes if that makes no more than most.
func (b *Budget) take(most, n int64) bool {
	for {
		used := b.used.Load()
		if used > most-n {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// maxUncollected bounds the bytes of bodies that have ended and were not collected. It is a
// quarter of the budget if that is less.
const maxUncollected = 32 << 20

// leave takes back the n bytes of a body: in a room that may be used again, or, where that
// is nil, for the garbage collector.
func (b *Budget) leave(n int64, r *room) {
	if r == nil {
		b.dropped.Add(n)
	}
	b.rooms.put(r)
}

// collect makes the garbage collector run if what bodies have dropped may not fit beside
// what they use. The collector's own limit is soft: on a busy machine, a burst of large
// bodies outruns it. So bodies wait for it here.
func (b *Budget) collect() {
	all := b.all.Load()
	full := func() bool { return b.used.Load()+b.dropped.Load() > all+min(all/4, maxUncollected) }
	if !full() {
		return
	}
	b.collecting.Lock()
	defer b.collecting.Unlock()
	if full() {
		garbage := b.dropped.Load()
		runtime.GC()
		b.dropped.Add(-garbage)
	}
}

// room is memory for the bytes of one small body after the other. A new piece for each
// would be half of what a job leaves to the garbage collector.
type room struct{ bytes []byte }

// Rooms have sizes in steps, so that a body holds hardly more than it needs.
const (
	roomStep    = 1 << 10
	largestRoom = AtOnce + roomStep // one byte more finds the end
)

// rooms are those that no body uses, by size.
type rooms [largestRoom / roomStep]sync.Pool

// get returns a room for n bytes, nil if that is too much for one.
func (r *rooms) get(n int64) *room {
	if n <= 0 || n > largestRoom {
		return nil
	}
	class := (n - 1) / roomStep
	if used, ok := r[class].Get().(*room); ok {
		return used
	}
	return &room{bytes: make([]byte, (class+1)*roomStep)}
}

// put takes a room back, if it is one. Nobody may read from it anymore.
func (r *rooms) put(used *room) {
	if used != nil {
		r[len(used.bytes)/roomStep-1].Put(used)
	}
}
