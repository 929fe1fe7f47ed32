// Package memory keeps the memory of the process small. It sets the garbage
// collector's aim after each collection, and returns to the system what a burst has
// left behind.
package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// The garbage collector's aim. Jobs leave a few KiB of garbage each, and little
// that lives: with Go's default of 100 %, a heap of 4 MiB is collected 30 times a
// second, which takes a tenth of the processor time. So a small heap may grow to
// several times what lives; a large one, of bodies and of waiting jobs, may not.
const (
	gcAllowance = 24 << 20 // garbage that never matters, in bytes
	gcMost      = 400      // percent of what lives
	gcLeast     = 25
)

// gcPercent is how much garbage there may be, in percent of the bytes that live.
func gcPercent(live uint64) int {
	return min(gcMost, max(gcLeast, int(gcAllowance*100/max(live, 1))))
}

const (
	// besides is what the process may take besides heads and bodies, in bytes, before
	// the collector works harder: connections, jobs, what is known of upstreams, garbage.
	besides = 128 << 20
	// spare is how much more than twice what lives may be kept when nothing happens.
	spare = 64 << 20
	// giveBackInterval is the time between two looks for memory of no use.
	giveBackInterval = 5 * time.Second
	// quietLooks is after how many looks without a collection there is one.
	quietLooks = 2
)

// keeper keeps the memory small.
type keeper struct {
	bodies  func() int64 // bytes that heads and bodies may take now
	quiet   int          // looks without a collection before
	samples []metrics.Sample
}

// newKeeper returns one for a process. bodies tells the most bytes that heads and bodies may take now.
func newKeeper(bodies func() int64) *keeper {
	return &keeper{bodies: bodies, samples: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, // found by the last collection
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, // with garbage that was not collected yet
	}}
}

// read returns the bytes that live, and the bytes that the heap has from the system.
func (k *keeper) read() (live, kept uint64) {
	metrics.Read(k.samples)
	for _, s := range k.samples[1:] {
		kept += s.Value.Uint64()
	}
	return k.samples[0].Value.Uint64(), kept
}

// limit is the bytes beyond which the collector runs more often. bodies are what heads and
// bodies may take. What else lives has the rest, and the limit stays well above it, or the
// collector would do nothing else.
func limit(live uint64, bodies int64) int64 {
	return bodies + max(besides, (int64(live)-bodies)*3/2)
}

// aim sets the collector's aim. A burst may fill the memory faster than the aim
// follows. So there is a limit as well.
func (k *keeper) aim() {
	live, _ := k.read()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit(live, k.bodies()))
	}
	debug.SetGCPercent(gcPercent(live))
}

// giveBack returns memory to the system if much of it is of no use. What lives is
// known from the last collection: where there was none for a while, because there are
// no jobs, it looks anew.
func (k *keeper) giveBack() {
	live, kept := k.read()
	if k.quiet++; k.quiet > quietLooks && kept > spare {
		runtime.GC()
		k.quiet = 0
		live, kept = k.read()
	}
	if kept > 2*live+spare {
		debug.FreeOSMemory()
	}
}

// Keep keeps the memory small until ctx ends. bodies tells the most bytes that heads and
// bodies may take now. GOGC and GOMEMLIMIT in the environment take precedence.
func Keep(ctx context.Context, bodies func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	k := newKeeper(bodies)
	collected := make(chan struct{}, 1)
	var ended atomic.Bool
	defer ended.Store(true)
	afterCollections(collected, &ended)
	ticker := time.NewTicker(giveBackInterval)
	defer ticker.Stop()
	for {
		k.aim()
		select {
		case <-ctx.Done():
			return
		case <-collected:
			k.quiet = 0
		case <-ticker.C:
			k.giveBack()
		}
	}
}

// afterCollections tells of each collection, until it has ended: an object that
// nobody holds is finalized after the next one.
func afterCollections(tell chan<- struct{}, ended *atomic.Bool) {
	type witness struct{ _ *int } // a pointer, or it would share its memory with other small objects
	runtime.SetFinalizer(new(witness), func(*witness) {
		select {
		case tell <- struct{}{}:
		default:
		}
		if !ended.Load() {
			afterCollections(tell, ended)
		}
	})
}
