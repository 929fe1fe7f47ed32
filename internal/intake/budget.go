package intake

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrNoRoom: the bodies of other jobs leave no memory even for the first bytes of this body.
var ErrNoRoom = errors.New("the memory for bodies is used up by other jobs")

// Budget bounds the memory of all kept bodies together. It is safe for concurrent
// use.
//
// A reserve beside it holds the first peek bytes of each body, because without them
// the job's members could not be read.
type Budget struct {
	whole, all atomic.Int64 // bounds in bytes, without and with the reserve
	used       atomic.Int64
	rooms      rooms // buffers to reuse

	dropped    atomic.Int64 // bytes left to the garbage collector since collect last ran it
	collecting sync.Mutex
}

// NewBudget returns a budget of whole bytes and a reserve in addition. With whole = 0,
// bodies longer than peek are never kept.
func NewBudget(whole, reserve int64) *Budget {
	b := new(Budget)
	b.Resize(whole, reserve)
	return b
}

// Resize changes the bounds. Bodies that are already kept stay, even if they exceed the new bounds.
func (b *Budget) Resize(whole, reserve int64) {
	b.whole.Store(whole)
	b.all.Store(whole + reserve)
}

// Used returns the bytes in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// All returns the bound on Used: budget plus reserve.
func (b *Budget) All() int64 { return b.all.Load() }

// Reserve takes n bytes from the budget or, if that is used up, from the reserve; it returns
// ErrNoRoom if both are used up. The caller gives the bytes back with Return.
func (b *Budget) Reserve(n int64) error {
	if !b.take(b.all.Load(), n) {
		return ErrNoRoom
	}
	return nil
}

// Return gives n bytes back to the budget.
func (b *Budget) Return(n int64) {
	if used := b.used.Add(-n); used < 0 {
		panic(fmt.Sprintf("BUG: intake: %d bytes returned to the budget were never taken", -used))
	}
}

// take takes n bytes and returns true, or returns false if more than most bytes would be in use.
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

// maxUncollected bounds the bytes of released bodies that the garbage collector has not freed
// yet. For a budget below 128 MiB, the bound is a quarter of the budget.
const maxUncollected = 32 << 20

// leave takes back the n bytes of a released body. If they belong to a room, a buffer for bodies, the room
// is kept for reuse. Otherwise r is nil, and the garbage collector frees them.
func (b *Budget) leave(n int64, r *room) {
	if r == nil {
		b.dropped.Add(n)
	}
	b.rooms.put(r)
}

// collect runs the garbage collector if the bytes in use and the released bytes together exceed
// the bound. GOMEMLIMIT alone does not prevent that: it is a soft limit, and a burst of large
// bodies on a busy machine outruns the collector. So new bodies wait for the collector here.
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

// room is a reusable buffer for small bodies. Without reuse, these buffers would be half of
// all garbage.
type room struct{ bytes []byte }

// The sizes of rooms are multiples of roomStep, so a body wastes less than that.
const (
	roomStep    = 1 << 10
	largestRoom = AtOnce + roomStep // with one byte more than the body, the same read returns io.EOF
)

// rooms holds the unused buffers, by size.
type rooms [largestRoom / roomStep]sync.Pool

// get returns a room of at least n bytes, or nil if n exceeds largestRoom.
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

// put makes a room available for reuse; nil is ignored. The caller must no longer use the room.
func (r *rooms) put(used *room) {
	if used != nil {
		r[len(used.bytes)/roomStep-1].Put(used)
	}
}
