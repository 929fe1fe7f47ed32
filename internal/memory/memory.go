// Package memory keeps the process within its memory limit.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Rest is the assumed memory of the process besides the bodies of jobs, in bytes: connections, jobs,
// state of upstreams, garbage.
const Rest = 256 << 20

// Settings of the garbage collector. A job makes a few KiB of garbage and little live memory: with
// Go's default, a heap of 4 MiB is collected 30 times a second, which takes a tenth of the
// CPU time. With these settings, garbage can be half of the live memory and half of the ballast.
const (
	collectPercent = 50
	ballastBytes   = 32 << 20
)

// Memory is the memory limit of the process.
type Memory struct {
	// Limit is the maximum memory of the process, in bytes: GOMEMLIMIT if it is set, otherwise nine tenths of the
	// limit of its cgroup or of the machine's memory, whichever is less. If neither is known, it is practically unlimited.
	Limit int64

	ballast []byte // counts as live memory for the collector; it is never written, so it uses no physical memory
}

// New reads the limit. It also configures the garbage collector, unless GOGC is set in the
// environment.
func New() *Memory {
	m := &Memory{Limit: systemLimit(os.DirFS("/")) / 10 * 9}
	if os.Getenv("GOMEMLIMIT") != "" {
		m.Limit = debug.SetMemoryLimit(-1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
		m.ballast = make([]byte, ballastBytes)
	}
	return m
}

// Bodies returns the memory for bodies, in bytes: the wanted bytes, but at most Limit minus Rest
// or a third of Limit, whichever is more.
func (m *Memory) Bodies(wanted int64) int64 { return min(wanted, max(m.Limit-Rest, m.Limit/3)) }

// Bound sets the collector's soft limit to the sum of bodies and Rest, at most Limit. The ballast is added, because
// the runtime counts it although it uses no physical memory.
func (m *Memory) Bound(bodies int64) {
	debug.SetMemoryLimit(min(m.Limit, bodies+Rest) + int64(len(m.ballast)))
}

// Memory is returned to the system after a burst, which the runtime alone would do only after minutes. That
// needs a garbage collection, which is not worth its cost if the process uses no more than 64 MiB.
const (
	giveBackInterval = 30 * time.Second
	little           = 64 << 20
)

// GiveBack periodically returns unused memory to the system, until ctx ends.
func (m *Memory) GiveBack(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(giveBackInterval):
		}
		if m.taken() > little {
			debug.FreeOSMemory()
		}
	}
}

// taken returns the memory that the process has obtained from the system, in bytes.
func (m *Memory) taken() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()-s[1].Value.Uint64()) - int64(len(m.ballast))
}
