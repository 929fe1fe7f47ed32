package main

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

// besides is what the process may take besides heads and bodies, in bytes, before
// the collector works harder: connections, jobs, what is known of upstreams, garbage.
const besides = 192 << 20

// memory keeps the process's memory small. It sets the collector's aim after each
// collection, and returns to the system what a burst has left behind. GOGC and
// GOMEMLIMIT in the environment take precedence.
type memory struct {
	percent  int   // as set last
	expected int64 // bytes, so far
	quiet    int   // looks without a collection before
	samples  []metrics.Sample
}

// newMemory returns a memory where heads and bodies may take so many bytes.
func newMemory(kept int64) *memory {
	return &memory{expected: kept + besides, samples: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, // found by the last collection
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, // with garbage that was not collected yet
	}}
}

// read returns the bytes that live, and those that are kept of the system's for the heap.
func (m *memory) read() (live, kept uint64) {
	metrics.Read(m.samples)
	for _, s := range m.samples[1:] {
		kept += s.Value.Uint64()
	}
	return m.samples[0].Value.Uint64(), kept
}

// aim sets the collector's aim. A burst may fill the memory faster than the aim
// follows: therefore there is a limit, too, from which on the collector runs more
// often. It stays well above what lives, or the collector would do nothing else.
func (m *memory) aim() {
	live, _ := m.read()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(m.expected, int64(live)*3/2))
	}
	percent := gcPercent(live)
	if percent*10 > m.percent*11 || percent*10 < m.percent*9 { // setting it stops the world for a moment
		debug.SetGCPercent(percent)
		m.percent = percent
	}
}

// spare is how much more than twice what lives may be kept when nothing happens.
const spare = 64 << 20

// giveBack returns memory to the system if much of it is of no use. What lives is
// known from the last collection: where there was none for a while, because there are
// no jobs, it looks anew.
func (m *memory) giveBack() {
	live, kept := m.read()
	if m.quiet++; m.quiet > quietLooks && kept > spare {
		runtime.GC()
		m.quiet = 0
		live, kept = m.read()
	}
	if kept > 2*live+spare {
		debug.FreeOSMemory()
	}
}

// giveBackInterval is how often it is looked for memory of no use.
const giveBackInterval = 5 * time.Second

// quietLooks is after how many looks without a collection there is one.
const quietLooks = 2

// run keeps the memory small until ctx ends.
func (m *memory) run(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	collected := make(chan struct{}, 1)
	var ended atomic.Bool
	defer ended.Store(true)
	afterCollections(collected, &ended)
	ticker := time.NewTicker(giveBackInterval)
	defer ticker.Stop()
	for {
		m.aim()
		select {
		case <-ctx.Done():
			return
		case <-collected:
			m.quiet = 0
		case <-ticker.C:
			m.giveBack()
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
